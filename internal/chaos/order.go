package main

import "time"

// The server process is told what to do by orders on its standard input, one JSON value
// each, and answers each on its standard output.

// order is one thing to do.
type order struct {
	Op     op
	Serve  *serving      `json:",omitempty"` // of opServe
	State  *state        `json:",omitempty"` // of opServe and opSet
	Code   uint32        `json:",omitempty"` // of opEnd, opRefuse, opReset, opGoAway
	Stream uint32        `json:",omitempty"` // of opGoAway: the last stream that was processed
	On     bool          `json:",omitempty"` // of opMute, opHush
	After  time.Duration `json:",omitempty"` // of opWake
}

// op names what an order wants.
type op string

const (
	opServe  op = "serve"  // (re)start the server
	opSet    op = "set"    // change the resources
	opEnd    op = "end"    // end all streams with a status
	opRefuse op = "refuse" // end each new stream with a status; OK takes them again
	opMute   op = "mute"   // read no request
	opHush   op = "hush"   // read requests and answer none
	opAsked  op = "asked"  // tell what is asked for
	opReset  op = "reset"  // RST_STREAM for all streams
	opGoAway op = "goaway" // GOAWAY on all connections
	opTear   op = "tear"   // write half a frame, then close
	opNoise  op = "noise"  // a message that is no response, on all streams
	opWake   op = "wake"   // SIGCONT for the parent, some time later
)

// serving is how the server is to serve.
type serving struct {
	TLS    string        `json:",omitempty"` // directory of ca.pem, cert.pem and key.pem
	Token  bool          `json:",omitempty"` // ask for a bearer token that has not expired
	Age    time.Duration `json:",omitempty"` // maximum connection age
	Memory string        `json:",omitempty"` // the server's name in memory; else it listens on loopback TCP
}

// state is everything that the server is to serve.
type state struct {
	Items []item
}

// answer follows an order that was carried out.
type answer struct {
	Addr    string `json:",omitempty"` // of the server; it changes when it serves anew
	Err     string `json:",omitempty"`
	Streams int    `json:",omitempty"` // that stand
	Settled bool   `json:",omitempty"` // all that is subscribed to was sent and answered
	// Asked is what is subscribed to of each kind.
	Asked [][]string `json:",omitempty"`
}
