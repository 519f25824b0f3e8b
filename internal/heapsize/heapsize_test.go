package heapsize_test

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/heapsize"
)

func TestWhile(t *testing.T) {
	const size = 64 << 20
	var kept []byte
	if grown := heapsize.While(func() { kept = make([]byte, size) }); grown < size || grown > 2*size {
		t.Errorf("the heap grew by %d bytes, want about %d", grown, size)
	}
	with := heapsize.InUse()
	clear(kept)
	kept = nil
	if without := heapsize.InUse(); with-without < size*9/10 {
		t.Errorf("%d bytes in use, and %d without %d", with, without, size)
	}
}
