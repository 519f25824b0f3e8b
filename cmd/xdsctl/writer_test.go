package main

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

func TestWantsColor(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	// The null device is a character device, as a terminal is.
	if got, want := wantsColor(device), runtime.GOOS != "windows"; got != want {
		t.Errorf("a character device: %v, want %v", got, want)
	}
	if wantsColor(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if wantsColor(file) {
		t.Error("a file is taken for a terminal")
	}
	for key, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(key, func(t *testing.T) {
			t.Setenv(key, value)
			if wantsColor(device) {
				t.Errorf("%s=%s is not obeyed", key, value)
			}
		})
	}
}
