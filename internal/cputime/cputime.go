// Package cputime measures the time that this process has computed, for tests of what something costs: it
// does not grow with what else the machine does.
package cputime
