package testutil

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
)

// RESTBomb answers polls with a response that is small as it is sent, and of a size in
// bytes when it is decompressed.
func RESTBomb(size int) (http.HandlerFunc, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	piece := bytes.Repeat([]byte("1"), 1<<16)
	_, err := z.Write([]byte(`{"version_info":"`))
	for written := 0; written < size && err == nil; written += len(piece) {
		_, err = z.Write(piece)
	}
	if err == nil {
		_, err = z.Write([]byte(`"}`))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("rest bomb: %w", err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes()) // to a client that gives up
	}, nil
}
