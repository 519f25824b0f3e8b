package view

import (
	"fmt"
	"maps"
	"slices"
)

// quota bounds how many names a view watches.
type quota struct {
	count   int                // of all parts
	starved map[anyPart]func() // who found no room, and how it tries again; the key of the shape is nil
	freed   bool               // something that was watched is not any more
}

// tooMany is the error of what found no room.
type tooMany int

func (n tooMany) Error() string {
	return fmt.Sprintf("the root leads to more than %d names (MaxNames)", int(n))
}

func (c *core) room() bool { return c.config.maxNames < 0 || c.quota.count < c.config.maxNames }

// starve notes that there was no room for what a part names.
func (c *core) starve(p anyPart, again func()) {
	if c.quota.starved == nil {
		c.quota.starved = map[anyPart]func(){}
	}
	c.quota.starved[p] = again
}

// hungry says whether there is room now for those who found none.
func (c *core) hungry() bool { return c.quota.freed && len(c.quota.starved) > 0 && c.room() }

// feedStarved has them try again, in order.
func (c *core) feedStarved() {
	defer func() { c.quota.freed = false }()
	if !c.hungry() {
		return
	}
	if again := c.quota.starved[nil]; again != nil {
		delete(c.quota.starved, nil)
		again()
	}
	var all []anyPart
	for p := range c.quota.starved {
		if p != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b anyPart) int { return compareWatches(c.watchOf(a), c.watchOf(b)) })
	for _, p := range all {
		again := c.quota.starved[p]
		delete(c.quota.starved, p)
		again()
	}
}

// starveShape is starve for routes and aggregates.
func (c *core) starveShape() {
	c.starve(nil, func() {
		c.build()
		c.retryVHDS()
		for _, name := range slices.Sorted(maps.Keys(c.links.roomless)) {
			c.links.enqueue(c.links.nodes[name])
		}
		clear(c.links.roomless)
	})
}
