package bootstrap

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/credentials"
)

// channelCreds reads channel_creds: the first entry of a known type wins (gRFC A27). All
// entries are checked for their shape, the winning one for what it says.
func (x field) channelCreds() ChannelCreds {
	items := x.items()
	switch list, ok := x.val.([]any); {
	case !x.present():
		x.fault("required")
	case ok && len(list) == 0:
		x.fault("must not be empty")
	}
	var found ChannelCreds
	var unknown []string
	faults := len(x.doc.faults)
	for _, item := range items {
		typ, ok := item.credsType()
		switch {
		case !ok || found.Type != "":
		case x.doc.opts.knowsChannel(typ):
			found = item.knownChannelCreds(typ)
		default:
			unknown = append(unknown, typ)
		}
	}
	if found.Type == "" && len(items) > 0 && len(x.doc.faults) == faults {
		x.fault("%s", noKnownCreds(unknown, x.doc.opts))
	}
	return found
}

// credsType checks the shape of an entry {type, config} and gives its type. A null entry
// is skipped like one of an unknown type.
func (x field) credsType() (string, bool) {
	if !x.present() || !x.object() {
		return "", false
	}
	typ := x.at("type").required()
	x.at("config").hidden().object()
	return typ, typ != ""
}

func (o *options) knowsChannel(typ string) bool {
	return typ == credsInsecure || typ == credsTLS || o.channel[typ] != nil
}

func (x field) knownChannelCreds(typ string) ChannelCreds {
	config := x.at("config")
	cc := ChannelCreds{Type: typ, Config: config.raw()}
	switch build := x.doc.opts.channel[typ]; {
	case typ == credsTLS:
		cc.TLS = config.tls()
	case build != nil:
		cc.Build = func() (credentials.Bundle, error) { return build(cc.Config) }
	}
	return cc
}

// noKnownCreds says which types were given, which are known, and what is missing for one
// that needs a package.
func noKnownCreds(given []string, o *options) string {
	text := fmt.Sprintf("no known type among %q; known: %q", given, o.channelTypes())
	if slices.Contains(given, credsGoogleDefault) {
		text += "; " + googleDefaultHint
	}
	return text
}

const googleDefaultHint = `"google_default" needs the option ` +
	`bootstrap.WithChannelCreds(googledefault.Type, googledefault.New) of package ` +
	`github.com/xdswatch/xdswatch/transport/googledefault`

// tls reads the config of a "tls" channel credential (gRFC A65).
func (x field) tls() *TLS {
	t := &TLS{
		CACertificateFile: x.at("ca_certificate_file").str(),
		CertificateFile:   x.at("certificate_file").str(),
		PrivateKeyFile:    x.at("private_key_file").str(),
		RefreshInterval:   x.at("refresh_interval").duration(),
	}
	switch {
	case t.CertificateFile != "" && t.PrivateKeyFile == "":
		x.at("private_key_file").fault("required with certificate_file")
	case t.CertificateFile == "" && t.PrivateKeyFile != "":
		x.at("certificate_file").fault("required with private_key_file")
	}
	if spiffe := x.at("spiffe_trust_bundle_map_file"); spiffe.str() != "" {
		spiffe.notice("is not used; servers are verified by ca_certificate_file or the system's roots")
	}
	return t
}

// callCreds reads call_creds: all entries of known types apply, others are skipped
// (gRFC A97).
func (x field) callCreds() []CallCreds {
	var out []CallCreds
	for _, item := range x.items() {
		typ, ok := item.credsType()
		if !ok {
			continue
		}
		config := item.at("config")
		cc := CallCreds{Type: typ, Config: config.raw()}
		build := x.doc.opts.call[typ]
		switch {
		case typ == credsJWTTokenFile:
			cc.TokenFile = config.at("jwt_token_file").required()
		case build != nil:
			cc.Build = func() (credentials.PerRPCCredentials, error) { return build(cc.Config) }
		default:
			continue
		}
		out = append(out, cc)
	}
	return out
}
