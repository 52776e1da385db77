package tools

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/sandbox"
)

// command is the work of a task that runs a command.
type command struct {
	process sandbox.Process
	out     *capture
}

func (c *command) wait() TaskEnd {
	end := TaskEnd{Status: TaskExited, Exit: c.process.Wait()}
	c.out.close()
	_, end.OutputFile = c.out.text()
	return end
}

func (c *command) stop() { c.process.Stop() }

func (c *command) info(i *TaskInfo) {
	i.OutputBytes = c.out.size()
	if i.Usage.Took = i.Exit.Duration; i.Status == TaskRunning {
		i.Usage.Took = time.Since(i.Started)
	}
}

// report implements taskWork.
func (c *command) report(info TaskInfo) Result { // info is older than the output: what a running task writes now is for next time
	running := info.Status == TaskRunning
	text := c.out.drain(running)
	_, path := c.out.text()
	d := &ShellResult{
		Stdout:           text,
		Interrupted:      info.Status == TaskStopped || info.Status == TaskTimedOut,
		TimedOut:         info.Status == TaskTimedOut,
		BackgroundTaskID: info.ID,
		Signal:           info.Exit.Signal,
		DurationMS:       info.Exit.Duration.Milliseconds(),
		OutputFile:       path,
		Status:           string(info.Status),
	}
	var note string
	if running {
		note = fmt.Sprintf("%s: running for %s", info.ID, time.Since(info.Started).Round(time.Second))
		if c.process.WaitingForInput() {
			note += "; it is waiting for somebody to type at a terminal, and nobody can: stop it. " + noninteractive
		}
	} else {
		note = fmt.Sprintf("%s: %s after %s", info.ID, info.Status, info.Exit.Duration.Round(10*time.Millisecond))
		if info.Exit.Code >= 0 {
			d.ExitCode = &info.Exit.Code
			note += fmt.Sprintf(", exit code %d", info.Exit.Code)
		} else if info.Exit.Signal != "" {
			note += ", killed by " + info.Exit.Signal
		}
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		text = "(no new output)"
	}
	res := Text(text + "\n[" + note + "]")
	res.Display = d
	return res
}
