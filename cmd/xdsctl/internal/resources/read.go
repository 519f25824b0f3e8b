package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// MaxFile is how large a file may be, in bytes.
const MaxFile = 256 << 20

// maxAliases is what the aliases of a document of YAML may stand for, in bytes of JSON, beside four times its length.
const maxAliases = 64 << 20

// suffixes are those of the files of a directory that are read.
var suffixes = map[string]func([]byte) ([]Resource, error){
	".pb": readBinary, ".pb_text": readText, ".pbtxt": readText, ".txtpb": readText, ".textproto": readText, ".prototext": readText,
	".json": readDocuments, ".yaml": readDocuments, ".yml": readDocuments,
}

// Read reads the resources of a file: a DiscoveryResponse in binary, text, JSON or YAML, by its
// suffix; in JSON and YAML also single resources with "@type", what `xdsctl get` prints, Envoy's
// config dump, and several documents. Of a directory it reads all regular files below it that have such
// a suffix, also by links, and no hidden ones. What is good is read beside what is bad. The error joins a [FileError] for each bad file; a
// [fs.PathError] says that there is none.
func Read(path string) ([]Resource, error) {
	var all []Resource
	var bad []error
	err := Tree(path, func(name string, info fs.FileInfo, err error) error {
		switch {
		case name != path && suffixes[filepath.Ext(name)] == nil && (info == nil || !info.IsDir()):
			return nil
		case err != nil:
			return err
		case info.IsDir() || name != path && !info.Mode().IsRegular():
			return nil
		}
		rs, err := readFile(name)
		all = append(all, rs...)
		if fault, ok := errors.AsType[*FileError](err); ok {
			bad = append(bad, fault)
			return nil
		}
		return err
	})
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		fault.Path = inLine(fault.Path)
	}
	return all, errors.Join(append(bad, err)...)
}

// FileError is what is wrong with a file. It quotes no value.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return inLine(e.File) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// inLine is a path for an error's text, in which each line is an error of its own.
func inLine(path string) string { return strings.ReplaceAll(path, "\n", `\n`) }

func readFile(path string) ([]Resource, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadFrom(file, path)
}

// ReadFrom reads what is in a file of a name; it need not exist.
func ReadFrom(in io.Reader, name string) ([]Resource, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, &FileError{name, fmt.Errorf("more than %d bytes", MaxFile)}
	}
	parse := suffixes[filepath.Ext(name)]
	other := parse == nil && name != "-"
	if parse == nil {
		parse = readDocuments
	}
	rs, err := parse(data)
	if _, several := err.(interface{ Unwrap() []error }); other && err != nil && !several && len(rs) == 0 {
		err = fmt.Errorf("%w; it is read as JSON or YAML, since its name does not end in .pb (binary), nor in .pb_text, .pbtxt, .txtpb, .textproto or .prototext (text)", err)
	}
	for i := range rs {
		rs[i].File = name
	}
	if err != nil {
		return rs, &FileError{name, err}
	}
	return rs, nil
}

func readBinary(data []byte) ([]Resource, error) {
	if err := affordableBinary(data); err != nil {
		return nil, err
	}
	m := &discoveryv3.DiscoveryResponse{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, errors.New("not a DiscoveryResponse")
	}
	return FromMessage(m, "", "")
}

func readText(data []byte) ([]Resource, error) {
	if err := AffordableText(data); err != nil {
		return nil, err
	}
	m := &discoveryv3.DiscoveryResponse{}
	if err := prototext.Unmarshal(data, m); err != nil {
		return nil, unquoted(err)
	}
	return FromMessage(m, "", "")
}

// separator stands between the documents of a file of YAML. What follows it on its line is of the next one.
var separator = regexp.MustCompile(`(?m)^(---|\.\.\.)([ \t\r]|$)`)

// readDocuments reads values of JSON, or documents of YAML.
func readDocuments(data []byte) (all []Resource, _ error) {
	if err := AffordableText(data); err != nil {
		return nil, err
	}
	var bad []error
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	documents, isJSON := values(data)
	if !isJSON {
		documents = nil
		for _, text := range separator.Split(string(data), -1) {
			documents = append(documents, []byte(text))
		}
	}
	for i, doc := range documents {
		text, err := toJSON(doc)
		if err == nil && string(text) == "null" { // nothing but comments
			continue
		}
		var rs []Resource
		if err == nil {
			rs, err = readDocument(text)
		}
		if err != nil && len(documents) > 1 {
			err = within(fmt.Sprintf("document %d", i+1), err)
		}
		if scope := scopeOf(doc); scope != "" {
			for i := range rs {
				rs[i].Scope = scope
			}
		}
		all, bad = append(all, rs...), append(bad, err)
	}
	return all, flat(bad)
}

// flat joins errors that may be joined. One alone is itself.
func flat(errs []error) error {
	var all []error
	for _, err := range errs {
		if joined, several := err.(interface{ Unwrap() []error }); several {
			all = append(all, joined.Unwrap()...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// scoped is the comment, among those that begin a document, that says which scope of a process has it.
var scoped = regexp.MustCompile(`^(?:\s*#[^\n]*\n)*?\s*# xdsctl scope: (".*")`)

// ScopeComment is the line that begins a document of YAML whose resources are of a scope.
func ScopeComment(scope string) string { return fmt.Sprintf("# xdsctl scope: %q\n", scope) }

// scopeOf is the scope that a document says; "" if it says none.
func scopeOf(doc []byte) string {
	m := scoped.FindSubmatch(doc)
	if m == nil {
		return ""
	}
	scope, _ := strconv.Unquote(string(m[1])) // "" if anybody else wrote it
	return scope
}

// values are those that JSON consists of.
func values(data []byte) (all []json.RawMessage, isJSON bool) {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all, true
		case err != nil:
			return nil, false
		}
		all = append(all, v)
	}
}

// toJSON is a document of YAML as JSON, which may have characters that YAML does not allow.
func toJSON(doc []byte) ([]byte, error) {
	if text := bytes.TrimSpace(doc); json.Valid(text) {
		return text, nil
	}
	return resourcejson.FromYAML(doc, 4*len(doc)+maxAliases) // H-10
}

// within says of each error where it is.
func within(place string, err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !several:
		return fmt.Errorf("%s: %w", place, err)
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, within(place, e))
	}
	return errors.Join(all...)
}

// document is what a document of JSON may be.
type document struct {
	Type      string            `json:"@type"`
	Version   string            `json:"version_info"`
	Version2  string            `json:"versionInfo"`
	TypeURL   string            `json:"type_url"`
	TypeURL2  string            `json:"typeUrl"`
	Resources []json.RawMessage `json:"resources"`
	Configs   []json.RawMessage `json:"configs"`
}

func readDocument(text []byte) ([]Resource, error) {
	if text[0] == '[' {
		return readList(text)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, errors.New("neither a resource, nor a DiscoveryResponse, nor a config dump")
	}
	switch {
	case d.Configs != nil:
		m := &adminv3.ConfigDump{}
		partly, err := parseDump(text, m)
		if err != nil {
			return nil, err
		}
		return FromDump(m).Contents(), partly
	case d.Type != "":
		return readAny(text, "")
	case d.Resources != nil:
		return eachOf(d.Resources, d.TypeURL+d.TypeURL2, d.Version+d.Version2, readAny)
	}
	return nil, errors.New("neither a resource with \"@type\", nor a DiscoveryResponse with resources, nor a config dump with configs")
}

// parseDump reads JSON of what a process has, which may be newer: fields that are not known are left out.
// partly says that there are extensions that are not known, of which the JSON is read (see asBytes).
func parseDump(text []byte, m proto.Message) (partly, _ error) {
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m)
	if err == nil {
		return nil, nil
	}
	path, fault := located(text, err)
	known, some := asBytes(text)
	if some {
		partly = &ResourceError{Path: path, Err: fault, Partly: true}
	} else {
		known = text // which may have bytes of them
	}
	if err := resourcejson.Parse(known, m); err != nil {
		return nil, Unplaced(err)
	}
	return partly, nil
}

// eachOf reads the entries of a response, and refuses those that are not of its type.
func eachOf[E any](entries []E, typeURL, version string, read func(E, string) ([]Resource, error)) (all []Resource, _ error) {
	var bad []error
	for i, entry := range entries {
		rs, err := read(entry, version)
		if len(rs) == 1 && typeURL != "" && rs[0].Type != typeURL {
			err = &ResourceError{Type: rs[0].Type, Name: rs[0].Name, Err: errors.New("not of the type of its response")}
		}
		all, bad = append(all, rs...), append(bad, within(fmt.Sprintf("resources[%d]", i), err))
	}
	return all, errors.Join(bad...)
}

// Unread is an error of [Read] without what is wrong with resources that were read nevertheless, with the
// JSON of what is of types that are not known.
func Unread(err error) error {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, Unread(e))
		}
		return errors.Join(all...)
	}
	if file, ok := err.(*FileError); ok {
		if err := Unread(file.Err); err != nil {
			return &FileError{file.File, err}
		}
		return nil
	}
	if r, ok := errors.AsType[*ResourceError](err); ok && r.Partly {
		return nil
	}
	return err
}

// ResourceError is what is wrong with a resource that cannot be read. It quotes no value.
type ResourceError struct {
	Type, Name string // Type is a URL
	Path       string // of the place, as names are spelled there; "" is the resource
	Err        error
	Partly     bool // the resource was read, with the JSON of what is of types that are not known
}

func (e *ResourceError) Error() string {
	return strings.Join(slices.DeleteFunc([]string{e.Type, e.Path, e.Err.Error()}, func(s string) bool { return s == "" }), ": ")
}

// Unwrap returns the cause.
func (e *ResourceError) Unwrap() error { return e.Err }

// readAny reads JSON with "@type". What `xdsctl` prints of a type that it does not know has the bytes
// as value.
func readAny(text json.RawMessage, version string) ([]Resource, error) {
	var head struct {
		Type  string `json:"@type"`
		Name  string `json:"name"`
		Value []byte `json:"value"`
	}
	_ = json.Unmarshal(text, &head) // a value may be of any other kind
	if head.Type == "" {
		return nil, &ResourceError{Name: head.Name, Err: errors.New(`without "@type"`)}
	}
	if !isKnown(head.Type) {
		rs := []Resource{{Type: head.Type, Name: head.Name, Version: version, Raw: head.Value}}
		if head.Value != nil {
			return rs, nil
		}
		if known, some := asBytes(text); some {
			_ = json.Unmarshal(known, &head) // it has bytes now
			rs[0].Raw = head.Value
		}
		return rs, &ResourceError{Err: notKnown(head.Type), Partly: true}
	}
	a, err := resourcejson.ParseAny(text)
	if err == nil {
		return FromAny(a, version)
	}
	path, fault := located(text, err)
	if known, some := asBytes(text); some {
		if a, err = resourcejson.ParseAny(known); err == nil {
			rs, err := FromAny(a, version)
			if err == nil {
				err = &ResourceError{head.Type, head.Name, path, fault, true}
			}
			return rs, err
		}
		path, fault = located(known, err)
	}
	return nil, &ResourceError{head.Type, head.Name, path, fault, false}
}

// readList reads what `xdsctl get -o json` prints, or a list of resources.
func readList(text []byte) (all []Resource, _ error) {
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return nil, err
	}
	var bad []error
	for i, item := range items {
		rs, err := readItem(item)
		all, bad = append(all, rs...), append(bad, within(fmt.Sprintf("[%d]", i), err))
	}
	return all, errors.Join(bad...)
}

func readItem(item json.RawMessage) ([]Resource, error) {
	var it struct {
		At       string `json:"@type"`
		Type     string
		Name     string
		Version  string
		Scope    any // another's field may have the name
		Resource map[string]any
	}
	err := json.Unmarshal(item, &it)
	switch {
	case err != nil:
		return nil, errors.New("not a resource")
	case it.At == "" && it.Resource == nil: // one that is missing
		return nil, nil
	case it.At == "":
		it.Resource["@type"] = it.Type
		if item, err = json.Marshal(it.Resource); err != nil {
			return nil, err
		}
	}
	rs, err := readAny(item, it.Version)
	if len(rs) == 1 && it.Resource != nil {
		rs[0].Name = it.Name
		rs[0].Scope, _ = it.Scope.(string)
	}
	return rs, err
}

// quoted is what errors of the JSON of protobuf quote, which may be a secret.
var quoted = regexp.MustCompile(`(invalid ([\w.]+ )?value( for [^:]*)?|unexpected token).*`)

// prefix is what protobuf writes before an error, with a space that differs from build to build.
var prefix = regexp.MustCompile(`^proto:[ \x{a0}]`)

// place is where an error is in the JSON that was made of the file, which says nothing of the file.
var place = regexp.MustCompile(`^(syntax error )?\(line \d+:\d+\): `)

// unknownField is an error of a key that may be one of the values too: it is no name of a field.
const unknownField = "unknown field"

var fieldName = regexp.MustCompile(`unknown field:? "?\w{1,64}"?$`)

func unquoted(err error) error {
	text := prefix.ReplaceAllString(quoted.ReplaceAllString(err.Error(), "$1"), "")
	if before, _, ok := strings.Cut(text, unknownField); ok && !fieldName.MatchString(text) {
		text = before + unknownField
	}
	return errors.New(text)
}

// Unplaced is an error of reading JSON as a message, without values and places in the text.
func Unplaced(err error) error {
	return errors.New(place.ReplaceAllString(unquoted(err).Error(), "$1"))
}
