// Reads one JSON string per line and prints the parsed quantity as JSON: exact, and rounded up to thousandths
// as in a resource list. A text that is not a quantity becomes null.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

type answer struct {
	Text  string `json:"text"`
	Exact string `json:"exact"`
	Milli string `json:"milli"`
}

func served(text string, round bool) (string, error) {
	var quantity resource.Quantity
	quoted, err := json.Marshal(text)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(quoted, &quantity); err != nil {
		return "", err
	}
	if round {
		quantity.RoundUp(resource.Milli)
	}
	return quantity.String(), nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			panic(err)
		}
		row := &answer{Text: text}
		var exactErr, milliErr error
		row.Exact, exactErr = served(text, false)
		row.Milli, milliErr = served(text, true)
		var line any = row
		if exactErr != nil || milliErr != nil {
			line = []string{text}
		}
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}
