// Package ctxerr tells why a context has ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Of is the error of a context that has ended, with its cause where that is another: [errors.Is] finds both.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(err, cause) { // a program's own context may have an error that == panics for
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
