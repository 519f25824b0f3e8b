// Package ctxerr tells why a context has ended.
package ctxerr

import (
	"context"
	"fmt"
)

// Of is the error of a context that has ended, with its cause where that is another: [errors.Is] finds both.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == cause {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
