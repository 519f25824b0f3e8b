package main

// row is one configuration.
type row struct {
	id    string
	flags string
	runs  int // at most; 0 is as many as asked for
}

var rows = []row{
	{id: "W1-sotw-cds-1k", flags: "-work load -variant sotw -type cds -n 1000"},
	{id: "W1-sotw-cds-10k", flags: "-work load -variant sotw -type cds -n 10000"},
	{id: "W1-sotw-cds-100k", flags: "-work load -variant sotw -type cds -n 100000"},
	{id: "W1-sotw-eds10-10k", flags: "-work load -variant sotw -type eds -eps 10 -n 10000"},
	{id: "W1-sotw-eds10-100k", flags: "-work load -variant sotw -type eds -eps 10 -n 100000"},
	{id: "W1-sotw-eds100-10k", flags: "-work load -variant sotw -type eds -eps 100 -n 10000"},
	{id: "W1-tls-sotw-cds-10k", flags: "-tls -work load -variant sotw -type cds -n 10000"},
	{id: "W2-delta-cds-10k", flags: "-work load -variant delta -type cds -n 10000"},
	{id: "W2-delta-cds-100k", flags: "-work load -variant delta -type cds -n 100000"},
	{id: "W2-delta-eds10-100k", flags: "-work load -variant delta -type eds -eps 10 -n 100000"},
	{id: "W2-tls-delta-cds-100k", flags: "-tls -work load -variant delta -type cds -n 100000"},
	{id: "W3-sotw-cds-1k", flags: "-work update -variant sotw -type cds -n 1000 -updates 200"},
	{id: "W3-sotw-cds-10k", flags: "-work update -variant sotw -type cds -n 10000 -updates 30"},
	{id: "W3-sotw-cds-100k", flags: "-work update -variant sotw -type cds -n 100000 -updates 5"},
	{id: "W3-tls-sotw-cds-10k", flags: "-tls -work update -variant sotw -type cds -n 10000 -updates 30"},
	{id: "W3-delta-cds-10k", flags: "-work update -variant delta -type cds -n 10000 -updates 2000"},
	{id: "W3-delta-cds-100k", flags: "-work update -variant delta -type cds -n 100000 -updates 2000"},
	{id: "W3-tls-delta-cds-100k", flags: "-tls -work update -variant delta -type cds -n 100000 -updates 2000"},
	{id: "W4-sotw-eds10-1kw", flags: "-work fanout -variant sotw -type eds -eps 10 -watchers 1000 -updates 100"},
	{id: "W4-sotw-eds10-10kw", flags: "-work fanout -variant sotw -type eds -eps 10 -watchers 10000 -updates 100"},
	{id: "W4-delta-eds10-10kw", flags: "-work fanout -variant delta -type eds -eps 10 -watchers 10000 -updates 100"},
	{id: "W5-sotw-eds10-1k", flags: "-work incr -variant sotw -type eds -eps 10 -n 1000"},
	{id: "W5-sotw-eds10-10k", flags: "-work incr -variant sotw -type eds -eps 10 -n 10000", runs: 1},
	{id: "W5-delta-eds10-10k", flags: "-work incr -variant delta -type eds -eps 10 -n 10000"},
	{id: "W6-sotw-cds-10k", flags: "-work reconnect -variant sotw -type cds -n 10000"},
	{id: "W6-sotw-cds-100k", flags: "-work reconnect -variant sotw -type cds -n 100000"},
	{id: "W6-delta-cds-10k", flags: "-work reconnect -variant delta -type cds -n 10000"},
	{id: "W6-delta-cds-100k", flags: "-work reconnect -variant delta -type cds -n 100000"},
	{id: "W7-sotw-cds-10k", flags: "-work load -variant sotw -type cds -n 10000", runs: 1},
	{id: "W7-sotw-cds-100k", flags: "-work load -variant sotw -type cds -n 100000", runs: 1},
	{id: "W7-sotw-eds10-10k", flags: "-work load -variant sotw -type eds -eps 10 -n 10000", runs: 1},
	{id: "W7-sotw-eds10-100k", flags: "-work load -variant sotw -type eds -eps 10 -n 100000", runs: 1},
	{id: "W7-delta-cds-100k", flags: "-work load -variant delta -type cds -n 100000", runs: 1},
	{id: "W8-cancel-sotw-eds10-10k", flags: "-work cancel -variant sotw -type eds -eps 10 -n 10000"},
	{id: "W8-cancel-delta-eds10-10k", flags: "-work cancel -variant delta -type eds -eps 10 -n 10000"},
	{id: "W9-load-delta-cds-1M", flags: "-work load -variant delta -type cds -n 1000000", runs: 1},
	{id: "W9-change-delta-cds-1M", flags: "-work update -variant delta -type cds -n 1000000 -updates 1", runs: 1},
	{id: "W9-reconnect-delta-cds-1M", flags: "-work reconnect -variant delta -type cds -n 1000000", runs: 1},
	{id: "W9-reconnect4M-delta-cds-1M", flags: "-work reconnect -variant delta -type cds -n 1000000 -limit 4194304", runs: 1},
	{id: "G1-load-delta-cds-100k", flags: "-work load -variant delta -type cds -n 100000 -authorities 1"},
	{id: "G2-change-delta-cds-100k", flags: "-work update -variant delta -type cds -n 100000 -authorities 1 -updates 2000"},
	{id: "A1-delta-cds-1x20k", flags: "-work load -variant delta -type cds -n 20000 -authorities 1 -servers 1"},
	{id: "A1-delta-cds-10x2k", flags: "-work load -variant delta -type cds -n 20000 -authorities 10 -servers 10"},
	{id: "A1-delta-cds-200x100", flags: "-work load -variant delta -type cds -n 20000 -authorities 200 -servers 10"},
	{id: "T1-heartbeat-delta-cds-100k", flags: "-work heartbeat -variant delta -type cds -n 100000 -authorities 1 -ttl 10m -updates 20"},
}
