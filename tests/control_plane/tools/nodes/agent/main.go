// The only program in the images of the tests: a node agent whose environment selects its behaviour.
//
//	agent          serves HTTP until SIGTERM
//	agent pause    waits for a signal, as the pause container of a pod
//	agent check    checks that the agent of this node serves, for exec probes
//
// Environment of an agent and of its check:
//   - NODE_NAME, PORTS: the node, and the loopback port of each node: "node=port,node=port"
//   - VERSION: the answer to every request
//   - READY_AFTER: the delay before it listens
//   - EXIT_AFTER: it ends with status 1 after this time; "0s" is at once
//   - IGNORE_TERM: if set, SIGTERM does nothing
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	mode := "serve"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "serve":
		serve()
	case "pause":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		<-signals
	case "check":
		check()
	default:
		fail("unknown mode %q", mode)
	}
}

func serve() {
	version := os.Getenv("VERSION")
	fmt.Printf("agent %s on %s\n", version, os.Getenv("NODE_NAME"))
	if after, set := duration("EXIT_AFTER"); set {
		end := func() { fail("agent %s: giving up after %s", version, after) }
		if after == 0 {
			end()
		}
		time.AfterFunc(after, end)
	}
	if os.Getenv("IGNORE_TERM") != "" {
		signal.Ignore(syscall.SIGTERM)
	} else {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			os.Exit(0)
		}()
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, version)
	})
	readyAfter, _ := duration("READY_AFTER")
	time.Sleep(readyAfter)
	listener, err := net.Listen("tcp", address())
	if err != nil {
		fail("cannot listen: %v", err)
	}
	fail("cannot serve: %v", http.Serve(listener, nil))
}

func check() {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get("http://" + address())
	if err != nil {
		fail("not ready: %v", err)
	}
	if answer.StatusCode != http.StatusOK {
		fail("not ready: %s", answer.Status)
	}
}

// address is the listen address of the agent of this node.
func address() string {
	node := os.Getenv("NODE_NAME")
	for _, pair := range strings.Split(os.Getenv("PORTS"), ",") {
		if name, port, found := strings.Cut(pair, "="); found && name == node {
			return "127.0.0.1:" + port
		}
	}
	fail("PORTS has no port for the node %q", node)
	return ""
}

func duration(variable string) (time.Duration, bool) {
	text, set := os.LookupEnv(variable)
	if !set {
		return 0, false
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		fail("%s: %v", variable, err)
	}
	return value, true
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
