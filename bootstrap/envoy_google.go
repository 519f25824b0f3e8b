package bootstrap

import (
	"strings"

	"google.golang.org/grpc/credentials"
)

// googleGRPC reads an envoy.config.core.v3.GrpcService.GoogleGrpc, which dials its target
// directly.
func (x field) googleGRPC() ManagementServer {
	for _, name := range []string{"call_credentials", "call_credentials_plugin"} {
		if calls := x.at(name); len(calls.items()) > 0 {
			calls.fault("is not supported; a gRPC bootstrap may have call_creds")
		}
	}
	if factory := x.at("credentials_factory_name"); factory.str() != "" {
		factory.fault("is not supported; want channel_credentials")
	}
	if args := x.at("channel_args"); args.object() {
		args.channelArgs()
	}
	// BOOTE-3: the target is dialled as it is.
	s := ManagementServer{URI: x.at("target_uri").dialled()}
	plugins := x.at("channel_credentials_plugin")
	switch creds := x.at("channel_credentials"); {
	case len(plugins.items()) > 0:
		s.ChannelCreds = plugins.pluginCreds()
	case creds.object():
		s.ChannelCreds = creds.googleCreds()
	default:
		s.ChannelCreds = Insecure()
	}
	return s
}

// channelArgs judges the arguments of a channel of gRPC's core: those of TLS are not to be had
// here, and the others make no connection less safe.
func (x field) channelArgs() {
	names, args := x.at("args").entries()
	for i, name := range names {
		// H-6: what cannot be had may be what makes it secure.
		if strings.Contains(name, "ssl") || strings.Contains(name, "tls") || strings.Contains(name, "secur") {
			args[i].hidden().fault("is not supported")
		} else {
			args[i].notice("is not used")
		}
	}
}

func (x field) googleCreds() ChannelCreds {
	ssl, google := x.at("ssl_credentials"), x.at("google_default")
	if local := x.at("local_credentials"); local.present() {
		local.fault("is not supported; want ssl_credentials or google_default")
		return ChannelCreds{}
	}
	switch {
	case ssl.present() && google.present():
		google.fault("is given beside ssl_credentials; want one of them")
	case ssl.object():
		return ChannelCreds{Type: credsTLS, TLS: ssl.sslCredentials()}
	case google.object():
		return google.googleDefault()
	case !ssl.present() && !google.present():
		x.fault("want ssl_credentials or google_default")
	}
	return ChannelCreds{}
}

// googleDefault is the credential that the program gave for "google_default".
func (x field) googleDefault() ChannelCreds {
	build := x.doc.opts.channel[credsGoogleDefault]
	if build == nil {
		x.fault("%s", googleDefaultHint)
		return ChannelCreds{}
	}
	return ChannelCreds{
		Type:  credsGoogleDefault,
		Build: func() (credentials.Bundle, error) { return build(nil) },
	}
}

// pluginCreds reads a list of credential extensions, of which the first known one wins, as in
// channel_creds of gRPC's format.
func (x field) pluginCreds() ChannelCreds {
	const pkg = "envoy.extensions.grpc_service.channel_credentials."
	var given []string
	for _, item := range x.items() {
		typ, ok := item.anyType()
		_, google := x.doc.opts.channel[credsGoogleDefault]
		switch {
		case !ok:
			return ChannelCreds{}
		case typ == pkg+"insecure.v3.InsecureCredentials":
			return Insecure()
		case typ == pkg+"google_default.v3.GoogleDefaultCredentials" && (google || !x.doc.opts.nextChannel):
			return item.googleDefault()
		case strings.HasPrefix(typ, pkg) && !x.doc.opts.nextChannel:
			item.fault("%s cannot be made here; bootstrap.AllowNextChannelCreds lets the next entry stand for it", typ)
			return ChannelCreds{}
		}
		item.notice("%s cannot be made here; the next entry stands for it", shown(typ))
		given = append(given, typ)
	}
	x.fault("no known type among %q", given)
	return ChannelCreds{}
}

func (x field) sslCredentials() *TLS {
	t := &TLS{}
	if roots := x.at("root_certs"); roots.object() {
		t.CACertificateFile, t.CACertificate = roots.dataSource()
	}
	x.keyPair(t, "cert_chain", "private_key")
	return t
}

// keyPair reads a certificate and its key, which stand and fall together.
func (x field) keyPair(t *TLS, certName, keyName string) {
	cert, key := x.at(certName), x.at(keyName)
	if cert.object() {
		t.CertificateFile, t.Certificate = cert.dataSource()
	}
	if key.object() {
		t.PrivateKeyFile, t.PrivateKey = key.dataSource()
	}
	switch {
	case cert.present() && !key.present():
		key.fault("required with %s", certName)
	case key.present() && !cert.present():
		cert.fault("required with %s", keyName)
	}
}

// dataSource reads an envoy.config.core.v3.DataSource: a file's name or the text itself,
// which is never shown.
func (x field) dataSource() (file string, inline []byte) {
	if env := x.at("environment_variable"); env.present() {
		env.hidden().fault("is not supported; want filename, inline_string or inline_bytes")
		return "", nil
	}
	text, encoded := x.at("inline_string").hidden(), x.at("inline_bytes").hidden()
	switch name := x.at("filename"); {
	case name.present():
		name.required()
		file = name.filePath()
	case text.present():
		inline = []byte(text.required())
	case encoded.present():
		encoded.required()
		inline = encoded.base64()
	default:
		x.fault("want filename, inline_string or inline_bytes")
	}
	return file, inline
}

// anyType is the full name of the type of a google.protobuf.Any, "" if it has none; ok is
// false after a fault.
func (x field) anyType() (name string, ok bool) {
	if !x.object() {
		return "", !x.present()
	}
	at := field{doc: x.doc, path: x.path + `["@type"]`}
	at.val = x.val.(map[string]any)["@type"]
	url := at.str()
	_, ok = at.val.(string)
	return url[strings.LastIndexByte(url, '/')+1:], ok || !at.present()
}
