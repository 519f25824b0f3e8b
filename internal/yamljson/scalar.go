package yamljson

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	decimal = regexp.MustCompile(`^[-+]?(?:0|[1-9][0-9]*)$`)
	octal   = regexp.MustCompile(`^[-+]?0[0-7]+$`)
	hex     = regexp.MustCompile(`^[-+]?0x[0-9a-fA-F]+$`)
	float   = regexp.MustCompile(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$`)
)

// scalar writes a value that is no list and no map. What is neither quoted nor tagged is read as Envoy reads it, which
// is YAML 1.1 but for numbers with underscores or in base 2.
func (w *Writer) scalar(n *Node) {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if tagged := n.Style&yaml.TaggedStyle != 0; tagged && n.Tag == "!!str" || quoted && !tagged {
		w.B = AppendString(w.B, n.Value)
		return
	}
	switch v := n.Value; v {
	case "", "~", "null", "Null", "NULL":
		w.B = append(w.B, "null"...)
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		w.B = append(w.B, "true"...)
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		w.B = append(w.B, "false"...)
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		w.B = append(w.B, `"Infinity"`...)
	case "-.inf", "-.Inf", "-.INF":
		w.B = append(w.B, `"-Infinity"`...)
	case ".nan", ".NaN", ".NAN":
		w.B = append(w.B, `"NaN"`...)
	default:
		w.number(v)
	}
}

// number writes a number, or a string if the text is none. An integer of more than 32 bits is a
// string, as protobuf's JSON and Envoy have it, so that none is rounded; one of more than 64 bits is a float.
func (w *Writer) number(text string) {
	base := 0
	switch {
	case decimal.MatchString(text):
		base = 10
	case octal.MatchString(text):
		base = 8
	case hex.MatchString(text):
		base = 16
	}
	if base > 0 {
		digits := strings.Replace(text, "0x", "", 1)
		if i, err := strconv.ParseInt(digits, base, 64); err == nil {
			if int64(int32(i)) == i {
				w.B = strconv.AppendInt(w.B, i, 10)
			} else {
				w.B = AppendString(w.B, strconv.FormatInt(i, 10))
			}
			return
		}
		if u, err := strconv.ParseUint(strings.TrimPrefix(digits, "+"), base, 64); err == nil {
			w.B = AppendString(w.B, strconv.FormatUint(u, 10))
			return
		}
	}
	if float.MatchString(text) {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			w.B = strconv.AppendFloat(w.B, f, 'g', -1, 64)
			return
		}
	}
	w.B = AppendString(w.B, text)
}
