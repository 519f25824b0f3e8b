package bootstrap

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/credentials"
)

// grpcChannelTypes are the types of channel credentials that gRPC has in one of its
// implementations.
var grpcChannelTypes = []string{credsInsecure, credsTLS, credsGoogleDefault, "xds", "alts", "local", "compute_engine", "composite"}

// channelCreds reads channel_creds: the first entry of a known type wins (gRFC A27). One before
// it that gRPC has, and this program has not, is a fault unless an option lets the next one
// stand for it: that may be less secure. All entries are checked for their shape, the winning
// one for what it says.
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
		// BOOT-3: the first type that is supported.
		case x.doc.opts.knowsChannel(typ) && !item.passedOver(typ):
			found = item.knownChannelCreds(typ)
		default:
			item.unknownChannelCreds(typ)
			unknown = append(unknown, typ)
		}
	}
	if found.Type == "" && len(items) > 0 && len(x.doc.faults) == faults {
		x.fault("%s", noKnownCreds(unknown, x.doc.opts))
	}
	return found
}

// passedOver is whether an entry of a known type says what this program cannot do, and the next
// may stand for it.
func (x field) passedOver(typ string) bool {
	return typ == credsTLS && x.doc.opts.nextChannel && x.at("config").at(spiffeKey).present()
}

// unknownChannelCreds judges an entry that is not used.
func (x field) unknownChannelCreds(typ string) {
	at, known := x.at("type"), append(x.doc.opts.channelTypes(), grpcChannelTypes...)
	const next = "; bootstrap.AllowNextChannelCreds lets the next entry stand for it"
	switch near := nearest(typ, known); {
	case x.doc.opts.nextChannel:
		at.notice("%s cannot be made here; the next entry stands for it", shown(typ))
	case typ == credsGoogleDefault:
		at.fault("cannot be made here; %s%s", googleDefaultHint, next)
	// H-7: the next entry may be less secure.
	case slices.Contains(grpcChannelTypes, typ):
		at.fault("cannot be made here, unless the option bootstrap.WithChannelCreds does%s", next)
	case near != "":
		at.fault("is no known type%s", didYouMean(typ, known))
	default:
		at.notice("%s is no type that gRPC or this program knows; the next entry stands for it", shown(typ))
	}
}

// credsType checks the shape of an entry {type, config} and gives its type. A null entry
// is skipped like one of an unknown type.
func (x field) credsType() (string, bool) {
	if !x.present() || !x.object() {
		return "", false
	}
	x.mustMean(credsKeys, credsKeys...)
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
	case typ == credsInsecure:
		config.mustMean(configKeys)
	case build != nil:
		cc.Build = func() (credentials.Bundle, error) { return build(cc.Config) }
	}
	return cc
}

// noKnownCreds says which types were given, and which are known.
func noKnownCreds(given []string, o *options) string {
	return fmt.Sprintf("no known type among %q; known: %q", given, o.channelTypes())
}

const googleDefaultHint = `"google_default" needs the option ` +
	`bootstrap.WithChannelCreds(googledefault.Type, googledefault.New) of package ` +
	`github.com/xdswatch/xdswatch/transport/googledefault`

// tls reads the config of a "tls" channel credential (gRFC A65).
func (x field) tls() *TLS {
	x.mustMean(configKeys, tlsKeys...)
	t := &TLS{
		CACertificateFile: x.at("ca_certificate_file").filePath(),
		CertificateFile:   x.at("certificate_file").filePath(),
		PrivateKeyFile:    x.at("private_key_file").filePath(),
		RefreshInterval:   x.at("refresh_interval").duration(),
	}
	switch {
	case t.CertificateFile != "" && t.PrivateKeyFile == "":
		x.at("private_key_file").fault("required with certificate_file")
	case t.CertificateFile == "" && t.PrivateKeyFile != "":
		x.at("certificate_file").fault("required with private_key_file")
	}
	if spiffe := x.at(spiffeKey); spiffe.str() != "" {
		spiffe.fault("is not supported; bootstrap.AllowNextChannelCreds lets the next entry stand for this one")
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
			config.mustMean(configKeys, "jwt_token_file")
			config.at("jwt_token_file").required()
			cc.TokenFile = config.at("jwt_token_file").filePath()
		case build != nil:
			cc.Build = func() (credentials.PerRPCCredentials, error) { return build(cc.Config) }
		default:
			known := append(slices.Collect(maps.Keys(x.doc.opts.call)), credsJWTTokenFile)
			item.at("type").notice("%s is no type that this program knows and is not sent%s", shown(typ), didYouMean(typ, known))
			continue
		}
		// BOOT-4: all that are supported.
		out = append(out, cc)
	}
	return out
}
