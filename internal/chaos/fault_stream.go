package main

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc/codes"
)

// streamFaults are those of gRPC and HTTP/2.
func streamFaults() []fault {
	return []fault{
		{name: "eof", do: endStreams(codes.OK, codes.OK)},
		{name: "status", do: endStreams(codes.Canceled, codes.Unauthenticated)},
		{name: "refused", out: true, do: refuseStreams},
		{name: "mute", do: muteStreams},
		{name: "rst-stream", do: resetStreams},
		{name: "goaway", do: goAway},
		{name: "goaway-unprocessed", do: goAwayUnprocessed},
		{name: "max-age", do: maxAge},
		{name: "torn-frame", do: tornFrame},
		{name: "noise", do: noise},
		{name: "rejected", do: rejected},
		{name: "storm", do: storm},
		{name: "idle", do: idle},
	}
}

// endStreams ends all streams with each status of a range.
func endStreams(from, to codes.Code) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for code := from; code <= to; code++ {
			if err := w.order(order{Op: opEnd, Code: uint32(code)}); err != nil {
				return err
			}
			if err := w.live(ctx, 3); err != nil {
				return err
			}
		}
		return nil
	}
}

// refuseStreams ends each new stream before its first response.
func refuseStreams(ctx context.Context, w *world) error {
	code := uint32(1 + w.rng.IntN(16))
	return w.between(ctx, aWhile,
		func() error {
			if err := w.order(order{Op: opRefuse, Code: code}); err != nil {
				return err
			}
			return w.order(order{Op: opEnd, Code: code})
		},
		func() error { return w.order(order{Op: opRefuse}) },
	)
}

// muteStreams lets streams stand on which nothing is said.
func muteStreams(ctx context.Context, w *world) error {
	return w.between(ctx, 3*aWhile,
		func() error {
			if err := w.order(order{Op: opMute, On: true}); err != nil {
				return err
			}
			return w.order(order{Op: opEnd, Code: uint32(codes.Unavailable)})
		},
		func() error { return w.order(order{Op: opMute}) },
	)
}

// lastErrorCode is HTTP_1_1_REQUIRED (RFC 9113, section 7).
const lastErrorCode = 0xd

// resetStreams resets all streams with each error code of HTTP/2.
func resetStreams(ctx context.Context, w *world) error {
	for code := range uint32(lastErrorCode + 1) {
		if err := w.order(order{Op: opReset, Code: code}); err != nil {
			return err
		}
		if err := w.live(ctx, 3); err != nil {
			return err
		}
	}
	return nil
}

// goAway asks for no new streams, in good order, and cuts what is left a while later.
func goAway(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error { return w.order(order{Op: opGoAway, Stream: math.MaxInt32}) },
		func() error { w.cut(); return nil },
	)
}

// goAwayUnprocessed says that no stream was processed, with an error code.
func goAwayUnprocessed(ctx context.Context, w *world) error {
	code := uint32(w.rng.IntN(lastErrorCode + 1))
	return w.between(ctx, aWhile,
		func() error { return w.order(order{Op: opGoAway, Code: code}) },
		func() error { return nil },
	)
}

// maxAge has the server end each connection soon, over and over.
func maxAge(ctx context.Context, w *world) error {
	s := w.serving
	s.Age = 150 * time.Millisecond
	return w.between(ctx, 8*aWhile,
		func() error { return w.serve(s) },
		func() error { return w.serve(w.serving) },
	)
}

// tornFrame ends connections in the middle of a frame.
func tornFrame(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error {
			if err := w.order(order{Op: opTear}); err != nil {
				return err
			}
			return w.change(1)
		},
		func() error { return nil },
	)
}

// noise sends what is no response.
func noise(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error { return w.order(order{Op: opNoise}) },
		func() error { return nil },
	)
}

// rejected has the server send resources that are not valid, and breaks streams meanwhile.
func rejected(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error {
			w.truth.spoil(w.rng, true)
			if err := w.publish(); err != nil {
				return err
			}
			if err := w.live(ctx, aWhile); err != nil {
				return err
			}
			w.cut()
			return nil
		},
		func() error {
			w.truth.spoil(w.rng, false)
			return w.publish()
		},
	)
}

// storm breaks streams or connections over and over.
func storm(ctx context.Context, w *world) error {
	for range 40 {
		var err error
		switch w.rng.IntN(4) {
		case 0:
			w.cut()
		case 1:
			err = w.order(order{Op: opReset, Code: 8})
		default:
			err = w.order(order{Op: opEnd, Code: uint32(w.rng.IntN(17))})
		}
		if err != nil {
			return err
		}
		if err := w.live(ctx, 2); err != nil {
			return err
		}
	}
	return nil
}

// idle lets nothing be watched for so long that the client gives up its connection, and
// cuts what is left.
func idle(ctx context.Context, w *world) error {
	w.program.stopAll()
	if err := pause(ctx, 3*linger); err != nil {
		return err
	}
	w.cut()
	return w.live(ctx, aWhile)
}
