package engine

import "github.com/xdswatch/xdswatch/internal/machine"

// turns are the tasks that wait for a worker. Servers take turns, so that what one sent, be it
// millions of resources, holds up those of another by one task.
type turns struct {
	of    map[int][]*machine.Task // by server, in order
	queue []int                   // the servers that have any, the next first
}

func (t *turns) add(tasks ...*machine.Task) {
	for _, task := range tasks {
		if len(t.of[task.Server]) == 0 {
			t.queue = append(t.queue, task.Server)
		}
		t.of[task.Server] = append(t.of[task.Server], task)
	}
}

// next takes a task; nil if there is none.
func (t *turns) next() *machine.Task {
	if len(t.queue) == 0 {
		return nil
	}
	server := t.queue[0]
	t.queue = t.queue[1:]
	tasks := t.of[server]
	task := tasks[0]
	tasks[0] = nil
	if tasks = tasks[1:]; len(tasks) > 0 {
		t.of[server] = tasks
		t.queue = append(t.queue, server)
	} else {
		delete(t.of, server)
	}
	return task
}
