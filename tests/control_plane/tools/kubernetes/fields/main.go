// Prints the fields of apps/v1 DaemonSet, and of every struct inside it, as a JSON table:
// their types, whether empty values are serialized, and how lists are merged. Embedded structs are
// flattened, as in JSON. One line per field, sorted, so that a new version of the API is a short
// diff.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// field is one entry of the table. Type is a Go-like type expression over JSON kinds, names of
// structs in this table, and the scalars that have their own parser (Quantity, Time, …).
type field struct {
	Type string `json:"type"`
	// Omit is the condition under which the field is omitted: "empty" (omitempty), "zero" (omitzero), or never.
	Omit          string `json:"omit,omitempty"`
	PatchStrategy string `json:"patchStrategy,omitempty"`
	PatchMergeKey string `json:"patchMergeKey,omitempty"`
}

type table map[string]map[string]field

// special are types whose JSON type differs from their Go kind.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "Quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "Raw",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "Raw",
}

func (t table) expression(typ reflect.Type) string {
	if name, ok := special[typ.PkgPath()+"."+typ.Name()]; ok {
		return name
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return "*" + t.expression(typ.Elem())
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + t.expression(typ.Elem())
	case reflect.Map:
		return "map[" + typ.Key().Name() + "]" + t.expression(typ.Elem())
	case reflect.Struct:
		t.add(typ)
		return typ.Name()
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return typ.Kind().String()
	default:
		panic(fmt.Sprintf("no rule for %s", typ))
	}
}

func (t table) add(typ reflect.Type) {
	if _, known := t[typ.Name()]; known {
		return
	}
	fields := map[string]field{}
	t[typ.Name()] = fields
	t.addFields(typ, fields)
}

func (t table) addFields(typ reflect.Type, fields map[string]field) {
	for i := range typ.NumField() {
		member := typ.Field(i)
		name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			t.addFields(member.Type, fields) // embedded
			continue
		}
		entry := field{
			Type:          t.expression(member.Type),
			PatchStrategy: member.Tag.Get("patchStrategy"),
			PatchMergeKey: member.Tag.Get("patchMergeKey"),
		}
		for _, option := range strings.Split(options, ",") {
			switch option {
			case "omitzero":
				entry.Omit = "zero"
			case "omitempty":
				if entry.Omit == "" {
					entry.Omit = "empty"
				}
			}
		}
		fields[name] = entry
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func main() {
	t := table{}
	t.add(reflect.TypeFor[appsv1.DaemonSet]())
	var out bytes.Buffer
	separator := "{"
	for _, name := range sorted(t) {
		fmt.Fprintf(&out, "%s\n%q: {", separator, name)
		inner := ""
		for _, key := range sorted(t[name]) {
			entry, err := json.Marshal(t[name][key])
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&out, "%s\n  %q: %s", inner, key, entry)
			inner = ","
		}
		out.WriteString("\n}")
		separator = ","
	}
	out.WriteString("\n}\n")
	if _, err := os.Stdout.Write(out.Bytes()); err != nil {
		panic(err)
	}
}
