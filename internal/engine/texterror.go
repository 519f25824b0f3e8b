package engine

import "fmt"

// textError is an error of the program's with its text: Error is code of the program's too, and
// may panic or block, so it is not called on the loop.
type textError struct {
	error
	text string
}

// WithText takes the text of an error of the program's, where that was returned.
func WithText(err error) error {
	if err == nil {
		return nil
	}
	return &textError{err, fmt.Sprint(err)}
}

func (e *textError) Error() string { return e.text }

func (e *textError) Unwrap() error { return e.error }
