package main

import (
	"strings"
	"testing"
)

// What cannot be an address is bad usage, wherever one is given, before anything is done.
func TestMalformedAddress(t *testing.T) {
	t.Parallel()
	const server, listen = "get --server $ cds", "replay --listen $ ."
	for _, tt := range []struct{ command, address, why string }{
		{server, "a:b:c", "too many colons"},
		{"watch --server $ cds", "a:b:c", "too many colons"},
		{"record --to x --server $ cds", "a:b:c", "too many colons"},
		{"resolve --server $ all", "a:b:c", "too many colons"},
		{"graph --server $ all", "a:b:c", "too many colons"},
		{"ui --server $ cds", "a:b:c", "too many colons"},
		{"diff server:$ .", "a:b:c", "too many colons"},
		{"diff . csds:$", "a:b:c", "too many colons"},
		{"status $", "http://a:b:c", "not a URL"},
		{"dump $", "http://a:99999/", "no port"},
		{"csds $", "a:99999", "no port"},
		{"csds $", "a:b:c", "too many colons"},
		{"dump $", "a:b:c", "too many colons"},
		{"validate csds:$", "a:b:c", "too many colons"},
		{"validate . $", "server:a:1", "no management server"},
		{server, "a:99999", "no port"},
		{server, "a:0", "no port"},
		{server, "a:-1", "no port"},
		{server, "a:", "no port"},
		{server, "a:port", "no port"},
		{server, "[::1:80", "missing ']'"},
		{server, "unix:", "no path"},
		{server, "dns:///", "no host"},
		{server, "dns:///a:b:c", "too many colons"},
		{server, "http://a:1", "no scheme"},
		{server, "u:MARK3R@a:1", "too many colons"},
		{server, "a:1?token=MARK3R", "no port"},
		{listen, "a:b:c", "too many colons"},
		{listen, "18000", "missing port"},
		{listen, ":99999", "no port"},
		{"ui --server 127.0.0.1:1 --listen $ cds", "a:b:c", "too many colons"},
	} {
		status, out, errs := runOnce(t, strings.Fields(strings.ReplaceAll(tt.command, "$", tt.address))...)
		if status != 2 || out != "" || !strings.Contains(errs, tt.why) || strings.Contains(errs, "MARK3R") { // H-3
			t.Errorf("%s, %s: status %d, %s%s", tt.command, tt.address, status, out, errs)
		}
	}
	for _, text := range []string{
		"localhost:1", "a.example", "127.0.0.1:18000", "[::1]:80", "::1", "[::1]", ":1", "a:https", "dns:1", "dns:///a:1", "dns:a:1", "dns://8.8.8.8/a",
		"unix:/run/x", "unix:x", "unix:///run/x", "unix-abstract:x", "passthrough:///a:1", "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:1",
	} {
		if err := targetFault(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{":0", "127.0.0.1:0", "localhost:http", "[::1]:1"} {
		if err := listenFault(text); err != nil {
			t.Error(err)
		}
	}
}
