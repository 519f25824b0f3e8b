// Package consul tests the client and the view against Consul's own xDS server, which is built from
// its module and runs as a process, since it needs older packages of Envoy's API than the library
// has. Consul's licence (BUSL 1.1) permits that: nothing of it is used in production.
package consul
