package machine

import (
	"testing"
	"unsafe"
)

// There may be a million entries, so their size is one that the allocator has.
func TestEntrySize(t *testing.T) {
	if size := unsafe.Sizeof(subscription{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 128 {
		t.Errorf("an entry takes %d bytes, want 128", size)
	}
}
