// A machine for a node of the tests: its own processes and mounts, all of which end with it.
//
//	node STATE
//
// Everything runs in a process and a mount namespace, in which this program is process 1. Lines on
// standard input are commands, with words separated by tabs:
//
//	start NAME LOG PROGRAM ARGUMENT...
//	signal NAME KILL|STOP|CONT
//
// Process 1 ends at the end of the input, when the process at the other end of the pipe ends. The
// kernel then kills all processes in the namespaces (including shims and containers), and removes the
// mounts. Finally the cgroups of the containers are removed, whose names are those of the folders
// that containerd creates for them below STATE.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const inside = "inside"

func main() {
	if len(os.Args) != 2 {
		fail("usage: node STATE")
	}
	if os.Args[1] == inside {
		prepare()
		machine := machine{pids: map[string]int{}}
		go machine.reap()
		machine.obey()
		return
	}
	// The parent death signal is sent when the parent thread ends.
	runtime.LockOSThread()
	command := exec.Command("/proc/self/exe", inside)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
	}
	removeCgroups(os.Args[1])
}

// tunables are the kernel parameters that a kubelet requires. It would set them for the whole machine
// permanently.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// prepare creates the mounts. Each node has its own folders where programs use fixed paths.
func prepare() {
	mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE)
	mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC)
	for _, folder := range []string{"/run", "/var/lib", "/var/log"} {
		mount("tmpfs", folder, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV)
	}
	for name, value := range tunables {
		file := "/run/" + path.Base(name)
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			fail("%v", err)
		}
		mount(file, "/proc/sys/"+name, "", syscall.MS_BIND)
	}
}

func mount(source, target, kind string, flags uintptr) {
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		fail("cannot mount %s: %v", target, err)
	}
}

// machine has the running processes, by name.
type machine struct {
	lock sync.Mutex
	pids map[string]int
}

func (it *machine) obey() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		switch words[0] {
		case "start":
			it.start(words[1], words[2], words[3:])
		case "signal":
			it.signal(words[1], words[2])
		default:
			fail("unknown command %q", lines.Text())
		}
	}
}

func (it *machine) start(name, log string, command []string) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fail("%v", err)
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		fail("%v", err)
	}
	defer null.Close()
	it.lock.Lock()
	defer it.lock.Unlock()
	process, err := os.StartProcess(command[0], command, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{null, output, output},
	})
	if err != nil {
		fail("cannot start %s: %v", name, err)
	}
	it.pids[name] = process.Pid
}

var signals = map[string]syscall.Signal{
	"KILL": syscall.SIGKILL,
	"STOP": syscall.SIGSTOP,
	"CONT": syscall.SIGCONT,
}

func (it *machine) signal(name, signal string) {
	value, known := signals[signal]
	if !known {
		fail("unknown signal %s", signal)
	}
	it.lock.Lock()
	defer it.lock.Unlock()
	if pid, running := it.pids[name]; running {
		syscall.Kill(pid, value)
	}
}

// reap reaps ended processes, including orphans, as process 1 has to.
func (it *machine) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		it.lock.Lock()
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
			for name, known := range it.pids {
				if known == pid {
					delete(it.pids, name)
					fmt.Fprintln(os.Stderr, "node:", name, "has ended")
				}
			}
		}
		it.lock.Unlock()
	}
}

// removeCgroups removes the containers' cgroups from every hierarchy, and their parent when no other
// node is left.
func removeCgroups(state string) {
	const parent = "k8s.io"
	containers, _ := filepath.Glob(state + "/io.containerd.runtime.v2.task/" + parent + "/*")
	for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		for _, container := range containers {
			folders, _ := filepath.Glob(filepath.Join(hierarchy, parent, filepath.Base(container)))
			for _, folder := range folders {
				remove(folder)
			}
		}
		folders, _ := filepath.Glob(filepath.Join(hierarchy, parent))
		for _, folder := range folders {
			os.Remove(folder)
		}
	}
}

// remove removes a cgroup; the kernel may take a moment after its last process has ended.
func remove(folder string) {
	for try := 0; ; try++ {
		err := os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		if try == 100 {
			fmt.Fprintln(os.Stderr, "node:", err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "node: "+format+"\n", values...)
	os.Exit(1)
}
