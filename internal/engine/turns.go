package engine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// maxUntold is how much of what a server has sent may wait for handlers while more of it is decoded,
// in bytes; each resource counts as untoldSize bytes more than it has. A decoded value takes several
// times its bytes, and up to some hundred times.
const (
	maxUntold  = 1 << 20
	untoldSize = 256
)

// spareTasks is how many tasks more than there are workers may be begun while an older one of the same kind
// is decoded: what the newer ones have waits for it, and so for handlers, without being in maxUntold.
const spareTasks = 8

// turns are the tasks that wait for a worker. Servers and their types take turns, so that what one sent, be it
// hundreds of thousands of resources, holds up those of another by one task.
type turns struct {
	of     map[ordered][]*machine.Task
	queue  []ordered   // those that have any, the next first
	untold map[int]int // bytes that dispatchers have not told yet, by server; none of zero
	begun  map[ordered][]*machine.Task
}

// ordered is what the machine takes in the order of its tasks. Those that are begun are kept from the oldest
// on that is not decoded; of those that are, nil.
type ordered struct {
	server int
	typ    *machine.Type
}

func newTurns() turns {
	return turns{of: map[ordered][]*machine.Task{}, untold: map[int]int{}, begun: map[ordered][]*machine.Task{}}
}

// waits says whether tasks of a server wait for a worker.
func (t *turns) waits(server int) bool {
	return slices.ContainsFunc(t.queue, func(o ordered) bool { return o.server == server })
}

// owes notes that resources of a server went to handlers.
func (t *turns) owes(server, size int) { t.untold[server] += size }

// told notes that dispatchers have told them.
func (t *turns) told(server, size int) {
	if t.untold[server] -= size; t.untold[server] == 0 {
		delete(t.untold, server)
	}
}

func (t *turns) add(tasks ...*machine.Task) {
	for _, task := range tasks {
		o := orderOf(task)
		if len(t.of[o]) == 0 {
			t.queue = append(t.queue, o)
		}
		t.of[o] = append(t.of[o], task)
	}
}

// next takes a task; nil if there is none, or if handlers or an older task have to come first: values that
// wait for them take several times what the server has sent.
func (t *turns) next() *machine.Task {
	at := slices.IndexFunc(t.queue, func(o ordered) bool {
		return t.untold[o.server] < maxUntold && len(t.begun[o]) < workers()+spareTasks
	})
	if at < 0 {
		return nil
	}
	o := t.queue[at]
	t.queue = slices.Delete(t.queue, at, at+1)
	tasks := t.of[o]
	task := tasks[0]
	tasks[0] = nil
	t.begun[o] = append(t.begun[o], task)
	if tasks = tasks[1:]; len(tasks) > 0 {
		t.of[o] = tasks
		t.queue = append(t.queue, o)
	} else {
		delete(t.of, o)
	}
	return task
}

func orderOf(t *machine.Task) ordered { return ordered{t.Server, t.Type} }

// decoded notes that a task is.
func (t *turns) decoded(task *machine.Task) {
	o := orderOf(task)
	begun := t.begun[o]
	begun[slices.Index(begun, task)] = nil
	for len(begun) > 0 && begun[0] == nil {
		begun = begun[1:]
	}
	if t.begun[o] = begun; len(begun) == 0 {
		delete(t.begun, o)
	}
}
