package client

import (
	"testing"
	"unsafe"
)

// There may be a million watches, each of which takes 160 bytes of the allocator.
func TestWatchSize(t *testing.T) {
	if size := unsafe.Sizeof(single{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 160 {
		t.Errorf("a watch takes %d bytes, want 160 at most", size)
	}
}
