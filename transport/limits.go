package transport

import "time"

// Bounds of what a server may send. What is over one is an error that names it.
const (
	// defaultReceiveSize is how large a response may be after decompression, in bytes
	// ([GRPCConfig].MaxReceiveSize, [RESTConfig].MaxReceiveSize).
	defaultReceiveSize = 128 << 20
	// maxExcerpt is how much is told, in bytes, of the text with an error status of HTTP, and of
	// a header or type URL that is not what it should be.
	maxExcerpt = 200
	// maxStatus is how much is kept of the status with which a server ends a stream, in bytes.
	maxStatus = 4096
	// maxRedirects is how often a poll is sent on within its host.
	maxRedirects = 3
	// smallMessage is how large a message, or the body of a polled response, may be, in bytes, to come
	// and be read without a share of the budget for large ones.
	smallMessage = 8 << 20
	// largeBudget is how much memory the large messages of all connections of the process may take, in
	// bytes. A polled body counts twice, since it is converted.
	largeBudget = 2 * defaultReceiveSize
	// largePace is how much of a large message has to come in each largeTime, in bytes, while others
	// wait; and one that has come has so long to be processed until others may come beside it.
	largePace = 2 << 20
	largeTime = 5 * time.Second
	// streamWindow and connWindow are what a server may send on a stream before the client begins to
	// read the message, and on all streams before the connection is read, in bytes.
	streamWindow = 64 << 10
	connWindow   = 16 << 20
	// restHeaderBytes bounds the headers of a polled response, in bytes.
	restHeaderBytes = 256 << 10
	// grpcHeaderBytes bounds the headers of a stream over gRPC, and its trailers, in bytes, with 32 for each
	// field (RFC 9113, section 6.5.2). gRPC, whose own bound is 16 MiB, keeps them as long as the stream lives.
	grpcHeaderBytes = 1 << 20
	// bodyPiece is how much of a large body is read into one piece of memory, in bytes.
	bodyPiece = 1 << 20
	// maxFrameExcess is how much memory the frames of unfinished messages may take on a connection
	// beside their content, in bytes, or half of the largest message if that is more.
	maxFrameExcess = 96 << 20
	// unfinishedPart bounds the unfinished messages of a connection: together they may have the size of
	// the largest message, and this part of it (a half) more.
	unfinishedPart = 2
	// frameMemory is about what gRPC and the client need for a frame, beside its buffer, in bytes.
	frameMemory = 128
	// farewellTime is how long the end of a connection waits for the server to read.
	farewellTime = 500 * time.Millisecond
)
