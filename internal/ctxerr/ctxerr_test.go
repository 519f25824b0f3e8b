package ctxerr

import (
	"context"
	"errors"
	"testing"
)

func TestOf(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := Of(ctx); !errors.Is(err, why) || !errors.Is(err, context.Canceled) || err.Error() != "context canceled: why" {
		t.Errorf("with a cause it is %v", err)
	}
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(nil)
	if err := Of(ctx); err != context.Canceled {
		t.Errorf("without a cause it is %v", err)
	}
}
