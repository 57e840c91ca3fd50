// Reads one JSON string per line, the text of a file, and prints its documents as kubectl reads them:
// a JSON list, or null if kubectl rejects one of them.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

func documents(text string) []any {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	all := []any{}
	for {
		var document any
		switch err := decoder.Decode(&document); err {
		case nil:
			all = append(all, document)
		case io.EOF:
			return all
		default:
			return nil
		}
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			panic(err)
		}
		if err := out.Encode(documents(text)); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}
