package bootstrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
)

const (
	secretResource = `"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"`
	pairSecret     = `{"resources":[{` + secretResource + `,"name":"pair","tls_certificate":{"certificate_chain":{"filename":"/c"},"private_key":{"filename":"/k"}}}]}`
	rootsSecret    = `{"resources":[{` + secretResource + `,"name":"roots","validation_context":{"trusted_ca":{"filename":"/r"},` +
		`"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"xds"}}]}}]}`
	pairOfFile  = `tls_certificate_sds_secret_configs: [{name: pair, sds_config: {path_config_source: {path: "DIR/pair"}, resource_api_version: V3}}]`
	rootsOfFile = `validation_context_sds_secret_config: {name: roots, sds_config: {path_config_source: {path: "DIR/roots"}}}`
	systemRoots = `validation_context: {system_root_certs: {}}`
)

// sdsDoc writes files to a new directory, and is a bootstrap with that CommonTlsContext, in
// which DIR stands for it.
func sdsDoc(t *testing.T, common string, files map[string]string) (doc, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc = envoyDoc(toCluster, tlsCluster(`common_tls_context: {`+common+`}`))
	return strings.ReplaceAll(doc, "DIR", dir), dir
}

// Secrets of files stand for what a TLS context could say itself.
//
// spec: BOOTE-3
func TestEnvoySecretFiles(t *testing.T) {
	const (
		socket      = "static_resources.clusters[0].transport_socket.typed_config.common_tls_context."
		defaultName = `combined_validation_context: {default_validation_context: {trusted_ca: {inline_string: PEM}, ` +
			`match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: first}}]}, ` + rootsOfFile + `}`
		noName = "has no match_typed_subject_alt_names, so the server's certificate must be valid for sni or the endpoint's host, which Envoy would not check"
	)
	for name, c := range map[string]struct {
		common, pair, roots string
		want                bootstrap.TLS
		notices             []string
	}{
		"both": {
			pairOfFile + ", " + rootsOfFile, pairSecret, rootsSecret,
			bootstrap.TLS{CACertificateFile: "/r", CertificateFile: "/c", PrivateKeyFile: "/k", SubjectAltNames: []string{"xds"}}, nil,
		},
		"YAML, wrapped, after others, in the older field": {
			`tls_certificate_sds_secret_configs: [{name: pair, sds_config: {path: "DIR/pair"}}, {}], ` + systemRoots, `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pair
- {` + strings.ReplaceAll(secretResource, ":\"", ": \"") + `, name: other, tlsCertificate: {}}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
    name: pair
    tlsCertificate: {certificateChain: {inlineString: C}, privateKey: {inlineBytes: Sw==}}
`, "",
			bootstrap.TLS{Certificate: []byte("C"), PrivateKey: []byte("K")},
			[]string{
				"envoy: " + socket + "tls_certificate_sds_secret_configs: 2 certificates are given; only the first is used",
				"envoy: " + socket + "validation_context: " + noName,
			},
		},
		"default and Secret, whose roots win": {
			defaultName, "", rootsSecret, bootstrap.TLS{CACertificateFile: "/r", SubjectAltNames: []string{"first", "xds"}}, nil,
		},
		"default with the roots": {
			defaultName, "", strings.Replace(rootsSecret, `"trusted_ca":{"filename":"/r"},`, "", 1),
			bootstrap.TLS{CACertificate: []byte("PEM"), SubjectAltNames: []string{"first", "xds"}}, nil,
		},
		"a Secret without roots": {
			rootsOfFile, "", `{"resources":[{` + secretResource + `,"name":"roots","validation_context":{}}]}`, bootstrap.TLS{SkipVerify: true},
			[]string{`DIR/roots: resources["roots"].validation_context.trusted_ca: is not given, so the server's certificate is not verified, as in Envoy`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc, dir := sdsDoc(t, c.common, map[string]string{"pair": c.pair, "roots": c.roots})
			boot, err := bootstrap.Parse("envoy", []byte(doc), bootstrap.AllowUnverifiedTLS())
			if err != nil {
				t.Fatal(err)
			}
			c.want.ServerName = "h"
			if diff := cmp.Diff(&c.want, boot.Servers[0].ChannelCreds.TLS, sameConfig); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var notices []string
			for _, text := range boot.Notices {
				notices = append(notices, strings.ReplaceAll(text, dir, "DIR"))
			}
			if diff := cmp.Diff(c.notices, notices, sameConfig); diff != "" {
				t.Errorf("notices, -want +got:\n%s", diff)
			}
		})
	}
}

// spec: BOOTE-3 CFG-5
func TestEnvoySecretFileFaults(t *testing.T) {
	const (
		socket = "envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context."
		pair   = socket + "tls_certificate_sds_secret_configs[0]"
		grpc   = `sds_config: {api_config_source: {api_type: GRPC}}`
	)
	withPair := func(config string) string {
		return `tls_certificate_sds_secret_configs: [` + config + `], ` + systemRoots
	}
	secret := func(rest string) string { return `{"resources":[{` + secretResource + `,"name":"pair",` + rest + `}]}` }
	for name, c := range map[string]struct{ common, pair, want string }{
		"over gRPC":                      {withPair(`{name: pair, ` + grpc + `}`), "", socket + "tls_certificate_sds_secret_configs: is not supported"},
		"roots over gRPC":                {`validation_context_sds_secret_config: {name: roots, ` + grpc + `}`, "", socket + "validation_context_sds_secret_config: is not supported"},
		"default and roots over gRPC":    {`combined_validation_context: {validation_context_sds_secret_config: {name: roots, ` + grpc + `}}`, "", socket + "combined_validation_context: is not supported"},
		"nowhere":                        {withPair(`{name: pair}`), "", pair + `.name = "pair": static_resources.secrets has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`},
		"two sources":                    {withPair(`{name: pair, sds_config: {path: "DIR/pair", ads: {}}}`), pairSecret, pair + ".sds_config.ads: is given beside path; want one of them"},
		"two pairs":                      {`tls_certificates: [{}], ` + pairOfFile + ", " + systemRoots, pairSecret, socket + "tls_certificate_sds_secret_configs: is given beside tls_certificates; want one of them"},
		"two validations":                {rootsOfFile + ", " + systemRoots, "", socket + "validation_context_sds_secret_config: is given beside validation_context; want one of them"},
		"version 2":                      {withPair(`{name: pair, sds_config: {path: "DIR/pair", resource_api_version: V2}}`), pairSecret, pair + `.sds_config.resource_api_version = "V2": version 2 of the xDS protocol is not supported; want V3`},
		"no name, no path":               {withPair(`{sds_config: {path_config_source: {}}}`), "", pair + ".sds_config.path_config_source.path: required\n" + pair + ".name: required"},
		"a path that is none":            {withPair(`{name: pair, sds_config: {path_config_source: 7}}`), "", pair + ".sds_config.path_config_source: want an object, is a number"},
		"null":                           {withPair(`null`), "", pair + ": want an object, is null"},
		"no file":                        {withPair(`{name: pair, sds_config: {path: "DIR/none"}}`), "", pair + `.sds_config.path = "DIR/none": cannot be read: no such file or directory`},
		"a directory":                    {withPair(`{name: pair, sds_config: {path: "DIR"}}`), "", pair + `.sds_config.path = "DIR": cannot be read: not a regular file`},
		"a device":                       {withPair(`{name: pair, sds_config: {path: /dev/null}}`), "", pair + `.sds_config.path = "/dev/null": cannot be read: not a regular file`},
		"an empty file":                  {pairOfFile + ", " + systemRoots, "", "DIR/pair: is empty"},
		"a file that does not parse":     {pairOfFile + ", " + systemRoots, "{\n]", "DIR/pair: line 2, column 1: invalid character ']' looking for beginning of object key string"},
		"resources that are none":        {pairOfFile + ", " + systemRoots, `{"resources":["s3cret"]}`, pair + `.name = "pair": DIR/pair has no envoy.extensions.transport_sockets.tls.v3.Secret of this name` + "\nDIR/pair: resources[0]: want an object, is a string"},
		"a Secret of another name":       {pairOfFile + ", " + systemRoots, rootsSecret, pair + `.name = "pair": DIR/pair has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`},
		"a Secret of version 2":          {pairOfFile + ", " + systemRoots, strings.Replace(pairSecret, "extensions.transport_sockets.tls.v3", "api.v2.auth", 1), pair + `.name = "pair": DIR/pair has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`},
		"a Secret of another kind":       {pairOfFile + ", " + systemRoots, secret(`"generic_secret":{}`), `DIR/pair: resources["pair"].tls_certificate: required`},
		"a certificate without key":      {pairOfFile + ", " + systemRoots, secret(`"tls_certificate":{"certificate_chain":{"filename":""}}`), `DIR/pair: resources["pair"].tls_certificate.certificate_chain.filename: must not be empty` + "\n" + `DIR/pair: resources["pair"].tls_certificate.private_key: required with certificate_chain`},
		"what a certificate cannot have": {pairOfFile + ", " + systemRoots, secret(`"tls_certificate":{"pkcs12":{"inline_string":"s3cret"}}`), `DIR/pair: resources["pair"].tls_certificate.pkcs12: is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			doc, dir := sdsDoc(t, c.common, map[string]string{"pair": c.pair, "roots": rootsSecret})
			wantError(t, doc, strings.ReplaceAll(c.want, "DIR", dir))
		})
	}
}

// A file that is too large is not read.
//
// spec: BOOTE-3
func TestEnvoySecretFileLimit(t *testing.T) {
	doc, dir := sdsDoc(t, pairOfFile+", "+systemRoots, map[string]string{"pair": pairSecret})
	if err := os.Truncate(filepath.Join(dir, "pair"), 128<<20+1); err != nil {
		t.Fatal(err)
	}
	wantError(t, doc, `envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context.`+
		`tls_certificate_sds_secret_configs[0].sds_config.path_config_source.path = "`+dir+`/pair": cannot be read: larger than the limit of 2097152 bytes`)
}

// A program's ConfigSource reaches a static cluster with Secrets of files too.
//
// spec: BOOTE-3
func TestEnvoySecretFilesOfConfigSource(t *testing.T) {
	doc, dir := sdsDoc(t, pairOfFile+", "+rootsOfFile, map[string]string{"pair": pairSecret, "roots": rootsSecret})
	boot := parse(t, doc)
	cs := peer(t, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"c"}}]}}`)
	s, err := boot.ConfigSource(cs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(boot.Servers[0].ChannelCreds, s.Servers[0].ChannelCreds, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "pair")); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.ConfigSource(cs); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("without the file: %v", err)
	}
}

// Secrets of the bootstrap itself, to which a TLS context refers by name alone, are read where
// they are, and nothing of them is shown.
//
// spec: BOOTE-3 H-3
func TestEnvoyStaticSecrets(t *testing.T) {
	const (
		pair     = `tls_certificate_sds_secret_configs: [{name: pair}]`
		roots    = `validation_context_sds_secret_config: {name: roots}`
		both     = `combined_validation_context: {default_validation_context: {match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: first}}]}, ` + roots + `}`
		keyPair  = `{name: pair, tls_certificate: {certificate_chain: {inline_string: C}, private_key: {inline_string: s3cret}}}`
		trusted  = `{name: roots, validation_context: {trusted_ca: {inline_string: R}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: xds}}]}}`
		secrets  = "envoy: static_resources.secrets"
		contexts = "envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context"
	)
	doc := func(common, secrets string) string {
		clusters := envoyDoc(toCluster, tlsCluster(`common_tls_context: {`+common+`}`))
		return strings.Replace(clusters, "static_resources: {", "static_resources: {secrets: "+secrets+", ", 1)
	}
	pinned := bootstrap.TLS{ServerName: "h", CACertificate: []byte("R"), SubjectAltNames: []string{"xds"}, Certificate: []byte("C"), PrivateKey: []byte("s3cret")}
	combined := bootstrap.TLS{ServerName: "h", CACertificate: []byte("R"), SubjectAltNames: []string{"first", "xds"}}
	for name, c := range map[string]struct {
		doc  string
		want bootstrap.TLS
	}{
		"both, after others of the name": {doc(pair+", "+roots, `[`+trusted+`, `+keyPair+`, {name: pair}, {name: roots, x: y}]`), pinned},
		"with a default, alone":          {doc(both, trusted), combined},
	} {
		boot := parse(t, c.doc)
		if diff := cmp.Diff(&c.want, boot.Servers[0].ChannelCreds.TLS, sameConfig); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		s, err := boot.ConfigSource(peer(t, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"c"}}]}}`))
		if err != nil {
			t.Errorf("%s: a source of the program: %v", name, err)
		} else if diff := cmp.Diff(&c.want, s.Servers[0].ChannelCreds.TLS, sameConfig); diff != "" {
			t.Errorf("%s: a source of the program, -want +got:\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct{ doc, want string }{
		"another name":     {doc(roots, `[`+keyPair+`]`), contexts + `.validation_context_sds_secret_config.name = "roots": static_resources.secrets has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`},
		"another kind":     {doc(roots, `[{name: roots, tls_certificate: {}}]`), secrets + `[0].validation_context: required`},
		"a misspelt field": {doc(roots, `[{name: roots, validation_context: {truted_ca: {inline_string: s3cret}, system_root_certs: {}}}]`), secrets + `[0].validation_context.truted_ca: is no field of this message; did you mean "trusted_ca"?`},
		"a value":          {doc(roots, `[{name: roots, validation_context: {trusted_ca: {inline_bytes: "s3cret?"}}}]`), secrets + `[0].validation_context.trusted_ca.inline_bytes: want base64`},
		"no object":        {doc(roots, `[s3cret]`), secrets + "[0]: want an object, is a string\n" + contexts + `.validation_context_sds_secret_config.name = "roots": static_resources.secrets has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`},
		"no name":          {doc(`validation_context_sds_secret_config: {}`, `[`+trusted+`]`), contexts + ".validation_context_sds_secret_config.name: required"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.doc, c.want) })
	}
}
