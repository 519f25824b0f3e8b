package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

// What is waited for, and what is watched, is listed in a time in proportion to it.
func TestCostOfLists(t *testing.T) {
	race.SkipCost(t)
	const n = 10_000
	clusters := make([]string, n)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("c%d", i)
	}
	d := newDriver(t, []string{"lds", "l"}, nil)
	d.run("start")
	d.run("lds l 1 inline:*=" + strings.Join(clusters, ","))
	begun := time.Now()
	if waiting, watched := len(d.core.waiting()), len(d.core.watched()); waiting != n || watched != n+1 {
		t.Errorf("%d are waited for, %d watched", waiting, watched)
	}
	if took := time.Since(begun); took > 2*time.Second { // some 50 ms on an idle machine
		t.Errorf("it took %v", took)
	}
}

// V1: a cluster of a view takes no more than 400 bytes beside its messages.
func TestCostOfMemory(t *testing.T) {
	race.SkipCost(t)
	if bytes := memoryOfCluster(t, 10_000); bytes > 400 {
		t.Errorf("a cluster takes %.0f bytes", bytes)
	}
}
