package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// stream is a [Stream] over gRPC.
type stream struct {
	grpc   grpc.ClientStream
	cancel context.CancelCauseFunc // also releases the channel
	limit  int
	holder *holder
	sent   *sent
	end    error // what Recv returned last, owned by its caller; nil while it gives messages
}

// errStreamClosed is the cause of a stream's end that its user asked for.
var errStreamClosed = errors.New("the stream was closed")

// Send is documented at [Stream].
func (s *stream) Send(msg ...[]byte) error {
	err := s.grpc.SendMsg(msg)
	if errors.Is(err, io.EOF) {
		return ErrStreamEnded
	}
	return err
}

// Recv is documented at [Stream].
func (s *stream) Recv() (Frame, error) {
	if s.end != nil {
		return Frame{}, s.end
	}
	var f Frame
	err := s.grpc.RecvMsg(&f)
	if err == nil {
		err = s.admit(&f)
	}
	if err == nil {
		return f, nil
	}
	f.Free()
	s.end = shortStatus(s.sent.hideIn(explainLimit(err, s.limit)))
	s.cancel(s.end)
	return Frame{}, s.end
}

// admit gives a large message its share of the budget, and decompresses it. One that was large on the wire
// has it.
func (s *stream) admit(f *Frame) error {
	if f.buffers.Len() > smallMessage {
		f.share = s.holder.take(&large)
	}
	switch size := f.buffers.Len(); {
	case f.isPacked():
		return s.unpack(f)
	case size > smallMessage:
		return s.share(s.grpc.Context(), f, size)
	}
	return nil
}

// share waits for the share of a message, unless it has one.
func (s *stream) share(ctx context.Context, f *Frame, size int) error {
	if f.share != nil {
		return nil
	}
	f.share = large.ask(s.holder, size, nil)
	f.share.complete()
	return f.share.wait(ctx)
}

// CloseSend is documented at [SendCloser].
func (s *stream) CloseSend() error { return s.grpc.CloseSend() }

// Close is documented at [Stream].
func (s *stream) Close() { s.cancel(errStreamClosed) }

// explainLimit names the limit that headers or a response exceeded, and says how to accept the response.
// gRPC tells it from a request larger than the server's only by the limit in the text.
func explainLimit(err error, limit int) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	text := st.Message()
	switch {
	case st.Code() == codes.Internal && text == "peer header list size exceeded limit":
		return status.Errorf(codes.Internal, "the server's headers or trailers have more than %d bytes", grpcHeaderBytes)
	case st.Code() != codes.ResourceExhausted:
		return err
	}
	ours := strings.HasSuffix(text, fmt.Sprintf("larger than max %d", limit)) ||
		strings.Contains(text, "larger than max (") && strings.HasSuffix(text, fmt.Sprintf(" vs. %d)", limit))
	if !ours {
		return err
	}
	return tooLarge(limit, "GRPCConfig", text)
}

// shortStatus cuts the message of a status and leaves out large details: each watch that is told of
// the end of a stream has a text of its own. It leaves out also what gRPC quotes of a body.
func shortStatus(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	text := withoutBody(st.Message())
	if text == st.Message() && proto.Size(st.Proto()) <= maxStatus {
		return err
	}
	if len(text) > maxStatus {
		text = strings.ToValidUTF8(text[:maxStatus], "") + "... (truncated)"
	}
	return status.Error(st.Code(), text)
}

// withoutBody is the message of a status without the body of an answer that is not gRPC's, which
// may hold resources. As of a poll, a plain sentence is told.
func withoutBody(text string) string {
	const unexpected = `received unexpected content-type "`
	head, body, quoted := strings.Cut(text, "\ndata: ")
	_, typ, found := strings.Cut(head, unexpected)
	if !quoted || !found {
		return text
	}
	typ, _, _ = strings.Cut(typ, `"`)
	if said, err := strconv.Unquote(body); err == nil && isSentence(typ, said) {
		return text
	}
	// H-3: gRPC quotes up to a kilobyte.
	return head
}

// tooLarge is the end of a stream whose response is larger than the limit of a configuration.
func tooLarge(limit int, config, reason string) error {
	return status.Errorf(codes.ResourceExhausted,
		"a response is larger than the limit of %d bytes; %s.MaxReceiveSize raises it: %s", limit, config, reason)
}

// describe is the text of an error with a status named once, without gRPC's preamble.
func describe(err error) string {
	if st, ok := status.FromError(err); ok && err != nil {
		return fmt.Sprintf("%v: %s", st.Code(), st.Message())
	}
	return err.Error()
}
