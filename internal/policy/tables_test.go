package policy

import (
	"bytes"
	"encoding/json"
	goflag "flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
)

var update = goflag.Bool("update", false, "write tables_data.go anew from data/*.json")

// TestShippedTables checks that tables_data.go says what data/*.json does.
// After a change there: go test ./internal/policy -run TestShippedTables -update
func TestShippedTables(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("// Code generated from data/*.json by go test -run TestShippedTables -update. DO NOT EDIT.\n\npackage policy\n")
	emit := func(name string, value any) {
		fmt.Fprintf(&b, "\nvar %s = ", name)
		writeGo(&b, reflect.ValueOf(value), true)
		b.WriteString("\n")
	}
	emit("shippedReadOnly", readCommands(t, "readonly"))
	emit("shippedWriters", readCommands(t, "writers"))
	emit("shippedWrappers", readCommands(t, "wrappers"))
	emit("shippedPaths", readPaths(t))
	emit("shippedShell", readShell(t))
	var ruins []rawRuin
	readData(t, "destructive", &ruins)
	emit("shippedDestructive", ruins)
	want, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	const file = "tables_data.go"
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s isn't what data/*.json says (%v): run this test with -update", file, err)
	}
}

func readData(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("data/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readCommands(t testing.TB, name string) []rawCommand {
	t.Helper()
	var raw map[string]rawCommand
	readData(t, name, &raw)
	var out []rawCommand
	taken := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		c := raw[key]
		c.Name = key
		out = append(out, c)
		if _, ok := operandKinds[c.O]; !ok {
			t.Errorf("%s: %s has operands of the unknown kind %q", name, key, c.O)
		}
		c.names(func(n string) {
			if taken[n] != "" {
				t.Errorf("%s: %s is in the lines of %s and %s", name, n, taken[n], key)
			}
			taken[n] = key
		})
	}
	return out
}

func readPaths(t testing.TB) rawPaths {
	t.Helper()
	var raw struct {
		rawPaths
		Protected map[string]string
	}
	readData(t, "paths", &raw)
	for _, p := range slices.Sorted(maps.Keys(raw.Protected)) {
		raw.rawPaths.Protected = append(raw.rawPaths.Protected, protectedPath{p, raw.Protected[p]})
	}
	return raw.rawPaths
}

func readShell(t testing.TB) rawShell {
	t.Helper()
	var raw struct {
		rawShell
		Network map[string]string
	}
	readData(t, "shell", &raw)
	raw.rawShell.Network = slices.Sorted(maps.Keys(raw.Network))
	return raw.rawShell
}

// writeGo writes a value as Go source, without what is zero.
func writeGo(b *bytes.Buffer, v reflect.Value, named bool) {
	switch v.Kind() {
	case reflect.Slice:
		fmt.Fprintf(b, "[]%s{\n", v.Type().Elem().Name())
		for i := range v.Len() {
			writeGo(b, v.Index(i), false)
			b.WriteString(",\n")
		}
		b.WriteString("}")
	case reflect.Struct:
		if named {
			b.WriteString(v.Type().Name())
		}
		b.WriteString("{")
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fmt.Fprintf(b, "%s: ", v.Type().Field(i).Name)
				writeGo(b, v.Field(i), true)
				b.WriteString(", ")
			}
		}
		b.WriteString("}")
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprint(b, v)
	}
}
