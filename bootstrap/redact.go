package bootstrap

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// redacted stands for what may be secret wherever a Config, or a part of one, is printed.
const redacted = redact.Hidden

// Types without methods, for printing.
type (
	plainHeader       Header
	plainTLS          TLS
	plainChannelCreds ChannelCreds
	plainCallCreds    CallCreds
	plainProvider     CertificateProvider
	plainServer       ManagementServer
	plainREST         REST
	plainSource       Source
	plainConfig       Config
)

// printPlain prints a value without methods of its own, whatever the verb: what a verb is not
// made for is printed without asking the methods of its parts.
func printPlain(f fmt.State, v any) {
	format := "%v"
	switch {
	case f.Flag('#'):
		format = "%#v"
	case f.Flag('+'):
		format = "%+v"
	}
	fmt.Fprintf(f, format, v)
}

func (c Config) redacted() plainConfig {
	if c.Node.GetMetadata() != nil {
		c.Node = proto.CloneOf(c.Node)
		c.Node.Metadata = nil
	}
	if services := c.AllowedGRPCServices; services != nil {
		c.AllowedGRPCServices = make(map[string]GRPCService, len(services))
		for target, service := range services {
			c.AllowedGRPCServices[redact.Target(target)] = service
		}
	}
	return plainConfig(c)
}

// Format implements fmt.Formatter. What may be secret is not told, nor the metadata of the node.
func (c Config) Format(f fmt.State, _ rune) { printPlain(f, c.redacted()) }

// Name is the URI as it is told in events, logs, dumps, errors and whatever else comes out, and as
// a store has it: "[redacted]" stands in place of user info, of the values of a query and of a fragment,
// which a resolver of the program may use. The path of a [*File] is told as it is.
func (s ManagementServer) Name() string {
	if s.File() != nil {
		return s.URI
	}
	return redact.Target(s.URI) // H-3
}

func (s ManagementServer) redacted() plainServer {
	s.URI = s.Name()
	return plainServer(s)
}

// Format implements fmt.Formatter. What may be secret is not told.
func (s ManagementServer) Format(f fmt.State, _ rune) { printPlain(f, s.redacted()) }

// Format implements fmt.Formatter. What may be secret is not told.
func (s Source) Format(f fmt.State, _ rune) { printPlain(f, plainSource(s)) }

// Format implements fmt.Formatter. What may be secret is not told.
func (r REST) Format(f fmt.State, _ rune) { printPlain(f, plainREST(r)) }

func (h Header) redacted() plainHeader { return plainHeader{Key: h.Key, Value: redacted} }

func (t TLS) redacted() plainTLS {
	for _, text := range []*[]byte{&t.CACertificate, &t.Certificate, &t.PrivateKey} {
		if *text != nil {
			*text = []byte(redacted)
		}
	}
	return plainTLS(t)
}

// redactedConfig is a config of which nothing is told but that there is one.
func redactedConfig(config json.RawMessage) json.RawMessage {
	if config == nil {
		return nil
	}
	return json.RawMessage(`"` + redacted + `"`)
}

// Format implements fmt.Formatter. It does not tell the value.
func (h Header) Format(f fmt.State, _ rune) {
	printPlain(f, h.redacted())
}

// MarshalJSON implements json.Marshaler. It does not tell the value.
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal(h.redacted()) }

// Format implements fmt.Formatter. It leaves out texts given in place of files.
func (t TLS) Format(f fmt.State, _ rune) {
	printPlain(f, t.redacted())
}

// MarshalJSON implements json.Marshaler. It leaves out texts given in place of files.
func (t TLS) MarshalJSON() ([]byte, error) { return json.Marshal(t.redacted()) }

// Format implements fmt.Formatter. It leaves out the Config, which may hold secrets.
func (cc ChannelCreds) Format(f fmt.State, _ rune) {
	cc.Config = redactedConfig(cc.Config)
	printPlain(f, plainChannelCreds(cc))
}

// Format implements fmt.Formatter. It leaves out the Config, which may hold secrets.
func (cc CallCreds) Format(f fmt.State, _ rune) {
	cc.Config = redactedConfig(cc.Config)
	printPlain(f, plainCallCreds(cc))
}

// Format implements fmt.Formatter. It leaves out the Config, which may hold secrets.
func (p CertificateProvider) Format(f fmt.State, _ rune) {
	p.Config = redactedConfig(p.Config)
	printPlain(f, plainProvider(p))
}

// MarshalJSON implements json.Marshaler. It leaves out the Config, which may hold secrets.
func (p CertificateProvider) MarshalJSON() ([]byte, error) {
	p.Config = redactedConfig(p.Config)
	return json.Marshal(plainProvider(p))
}
