// Package v2 holds tests of the client against a management server of version 2 of the
// xDS protocol as there were some: see its command server. Both are modules of their own,
// since no program can link the generated code of both versions.
package v2
