package file

import (
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/internal/regular"
)

var (
	// ErrEmpty says that a file has no content at all.
	ErrEmpty = errors.New("the file is empty")
	// ErrNotRegular says that a path leads to a directory, a pipe, a socket or a device.
	ErrNotRegular = regular.ErrNotRegular
	// ErrUnsettled says that a file is written to without a pause.
	ErrUnsettled = errors.New("the file does not stop changing")
	// ErrNotCollection says that a file holds something else than a list collection.
	ErrNotCollection = errors.New("not a Resource with a list collection")
)

// Error is what is wrong with a file.
type Error struct {
	Path string
	// Err is one of the sentinels of this package, a [*SizeError], [*SyntaxError],
	// [*TypeError], [*RefusedError] or [*ReferenceError], or the error of the system, such as
	// [fs.ErrNotExist] or [fs.ErrPermission].
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("file %q: %v", e.Path, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// SizeError says that a file is too large to be read.
type SizeError struct {
	Limit int64 // [Config.MaxSize]
	// Expanded says that not the file is too large, but the expansion of its YAML aliases.
	Expanded bool
}

func (e *SizeError) Error() string {
	what := "the file is"
	if e.Expanded {
		what = "what the aliases of the file stand for is"
	}
	return fmt.Sprintf("%s larger than the limit of %d bytes; MaxSize raises it", what, e.Limit)
}

// SyntaxError says that the content of a file is malformed.
type SyntaxError struct {
	Format string // "binary", "text", "JSON" or "YAML"
	Line   int    // from 1; 0 if not known
	Column int    // from 1, in characters; 0 if not known
	Entry  int    // the index in resources; -1 if the fault is in none
	Err    error  // the path of the field and the kind of fault; it quotes nothing of the file
}

func (e *SyntaxError) Error() string {
	at := e.Format
	if e.Line > 0 {
		at += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Line > 0 && e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	if e.Entry >= 0 {
		at += fmt.Sprintf(": resources[%d]", e.Entry)
	}
	return fmt.Sprintf("%s: %v", at, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// ReferenceError says that a file to which a Secret refers cannot be read. The Secret stays in
// force, and the file counts as unchanged. If there are several such files the error is for the
// first.
type ReferenceError struct {
	Secret string // its name
	Path   string // of the file that it refers to
	Err    error  // a [*SizeError], [ErrNotRegular], or the error of the system
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("the Secret %q refers to the file %q: %v", e.Secret, e.Path, e.Err)
}

func (e *ReferenceError) Unwrap() error { return e.Err }

// TypeError says that the client subscribed to another type than the file holds.
type TypeError struct {
	Holds, Asked string // type URLs
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("the file holds %q and was asked for %q", e.Holds, e.Asked)
}

// RefusedError says that the client refused part of a file's content (xDS protocol, "ACK/NACK").
type RefusedError struct {
	TypeURL string
	Message string // of the NACK
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: resources were refused: %s", e.TypeURL, e.Message)
}

// codeOf is the code under which watches hear of a bad file: one for what it holds, one for
// a file that cannot be read. Never PERMISSION_DENIED, which may take values away (gRFC A88).
func codeOf(err error) codes.Code {
	if as[*SyntaxError](err) || as[*TypeError](err) || as[*SizeError](err) ||
		errors.Is(err, ErrEmpty) || errors.Is(err, ErrNotRegular) || errors.Is(err, ErrNotCollection) {
		return codes.InvalidArgument
	}
	return codes.Unavailable
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// reason is an error of the system without the path, which [Error] tells.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
