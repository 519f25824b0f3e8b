package transport

// Bounds of what a server may send. What is over one is an error that names it.
const (
	// defaultReceiveSize is how large a response may be after decompression, in bytes
	// ([GRPCConfig].MaxReceiveSize, [RESTConfig].MaxReceiveSize).
	defaultReceiveSize = 128 << 20
	// maxExcerpt is how much of the text with an error status of HTTP is told, in bytes.
	maxExcerpt = 200
	// maxRedirects is how often a poll is sent on within its host.
	maxRedirects = 3
	// restHeaderBytes bounds the headers of a polled response, in bytes.
	restHeaderBytes = 256 << 10
)
