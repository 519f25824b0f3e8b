package file_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/transport/file"
)

// nobody is a user without rights.
const nobody = 65534

// A file that may not be read leaves what it held. Rights do not bind root, so the thread
// that receives becomes another user as far as files are concerned.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	must(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755))
	place(t, path, answer("1", "a"))
	r := newRig(t, path)
	r.stream = r.dial()
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(nobody); err != nil {
				r.ended <- err
				return
			}
		}
		r.receive()
	}()
	r.ask(clusterURL, "a")
	r.want("1|a")
	must(t, os.Chmod(path, 0))
	wantIs(t, r.wantTold("permission denied"), os.ErrPermission)
	r.want(`1|error 14 of a: file "PATH": permission denied`)
	must(t, os.Chmod(path, 0o644))
	r.want("1|a")
	r.wantTold("")
}

// A pipe or a socket in place of the file does not hold up who reads.
func TestPipe(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"socket": func(path string) error {
			lis, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				return err
			}
			lis.SetUnlinkOnClose(false)
			return lis.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := at(t, "cds.pb")
			place(t, path, answer("1", "a"))
			r := open(t, path)
			r.ask(clusterURL)
			r.want("1|a")
			must(t, put(path+".new"))
			must(t, os.Rename(path+".new", path))
			wantIs(t, r.wantTold("not a regular file"), file.ErrNotRegular)
			r.wantError()
			place(t, path, answer("2", "a"))
			r.want("2|a")
			r.wantTold("")
		})
	}
}

// Notifications are let go of with the stream.
func TestNotificationsClosed(t *testing.T) {
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	before := notifiers(t)
	r := open(t, path)
	r.ask(clusterURL)
	r.want("1|a")
	if got := notifiers(t); got != before+1 {
		t.Errorf("%d notifiers are open, want %d", got, before+1)
	}
	r.stream.Close()
	if got := notifiers(t); got != before {
		t.Errorf("%d notifiers are open after the end, want %d", got, before)
	}
}

func notifiers(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.Contains(to, "inotify") {
			n++
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return n
}

// Where the system has no more notifiers to give, the file is looked at now and then.
// The limit is that of the whole process: other tests must not run beside this one.
func TestNoNotifications(t *testing.T) {
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	few := old
	few.Cur = lowest(t)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	restore := func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) }
	defer restore()
	never := newRig(t, path).conn(func(_ *sourceConfig, c *carrierConfig) { c.Recheck = -1 })
	defer never.Close()
	if _, err := never.Open(t.Context(), ""); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("neither notifications nor looking: %v, want %v", err, syscall.EMFILE)
	}
	r := newRig(t, path)
	r.stream = r.dial(func(_ *sourceConfig, c *carrierConfig) { c.Recheck = settle })
	restore()
	go r.receive()
	r.ask(clusterURL)
	r.want("1|a")
	place(t, path, answer("2", "a"))
	r.want("2|a")
}

// lowest is the first number that an open file would get.
func lowest(t *testing.T) uint64 {
	t.Helper()
	f, err := os.Open(os.DevNull)
	must(t, err)
	defer f.Close()
	return uint64(f.Fd())
}

// A file that opens and then fails to be read is told of like one that does not open.
// spec: FILE-2
func TestReferenceFailsToBeRead(t *testing.T) {
	t.Parallel()
	const broken = "/proc/self/mem" // nothing is mapped where it begins
	path := at(t, "sds.pb")
	place(t, path, secrets("1", roots("roots", broken)))
	r := open(t, path)
	r.ask(sds.Type.TypeURL(), "roots")
	r.want("1|roots")
	r.ask(sds.Type.TypeURL(), "roots")
	wantIs(t, r.wantTold(`refers to the file "`+broken+`"`), syscall.EIO)
}
