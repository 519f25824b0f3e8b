// Package older holds tests of the client against go-control-plane v0.13.4, as command server runs it: caches before
// v0.14 do not answer a name that was dropped and is requested again at the same version.
package older
