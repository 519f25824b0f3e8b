package testutil

import "testing"

// StartServer is [NewServer] for the length of a test, which closes it at its end. In a
// testing/synctest bubble the test is the bubble's own.
func StartServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s := NewServer(opts...)
	tb.Cleanup(s.Close)
	return s
}

// StartManagementServer is [NewManagementServer] for the length of a test, which fails if
// the server cannot start and stops it at its end.
func StartManagementServer(tb testing.TB, cfg ManagementConfig) *ManagementServer {
	tb.Helper()
	m, err := NewManagementServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Stop)
	return m
}

// StartCollectionServer is [NewCollectionServer] for the length of a test, which fails if
// the server cannot start and stops it at its end.
func StartCollectionServer(tb testing.TB, opts ...Option) *CollectionServer {
	tb.Helper()
	s, err := NewCollectionServer(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}
