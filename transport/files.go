package transport

import (
	"context"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// How often the files of a credential are looked at while a connection exists, and how soon again
// when one of them is bad: it may be half written.
const (
	lookEvery = 5 * time.Second
	lookAgain = time.Second
)

// FileReport says that a file of a server's credentials cannot be used as it is now, while what was
// read of it earlier stays in use; or that this is over. A file that was never good is not
// reported: attempts to connect fail, and their errors name it.
type FileReport struct {
	Server string // URI, as [bootstrap.ManagementServer.Name] tells it
	Key    string // of the server ([bootstrap.ManagementServer.Key]): two may have one URI
	Path   string // of a certificate, of a CA, or of a token
	// Err says what is wrong. It is nil if the file is good again, and [ErrClosed] if nothing is
	// known of it any more, since the connection was closed.
	Err error
}

// look reads files of a credential, and says why they cannot be used, by their paths; nil of a good one.
type look func(context.Context) map[string]error

// watchFiles looks at the files of a connection's credentials until ctx ends, and reports each
// fault that is there twice in a row, once.
func watchFiles(ctx context.Context, s bootstrap.ManagementServer, looks []look, hear func(FileReport)) {
	if len(looks) == 0 || hear == nil {
		return
	}
	name, key := s.Name(), s.Key()
	report := func(path string, err error) { hear(FileReport{Server: name, Key: key, Path: path, Err: err}) }
	bad, told := map[string]bool{}, map[string]string{}
	for wait := lookEvery; sleep(ctx, wait); {
		wait = lookEvery
		for _, look := range looks {
			for path, err := range look(ctx) {
				switch {
				case err == nil:
					if told[path] != "" {
						report(path, nil)
					}
					delete(bad, path)
					delete(told, path)
				case !bad[path]:
					bad[path], wait = true, lookAgain
				case told[path] != err.Error():
					told[path] = err.Error()
					report(path, err)
				}
			}
		}
	}
	for path := range told {
		report(path, ErrClosed)
	}
}

// sleep is false if ctx ends meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
