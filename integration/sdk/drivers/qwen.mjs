// Runs scenarios with the TypeScript SDK of qwen-code; see driver.mjs.
import * as sdk from '@qwen-code/sdk';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { AGENT, Base, Prompts, isDelta, isResult, isToolUse, once, serve } from './driver.mjs';

class Run extends Base {
  query(prompt, options = {}) {
    return sdk.query({
      prompt,
      options: { pathToQwenExecutable: AGENT, cwd: this.cwd, env: this.env, model: 'gpt-test', authType: 'openai', permissionMode: 'default', ...options },
    });
  }

  async ask(prompt, options) {
    await this.all(this.query(prompt, options));
  }

  // turns says each prompt once the turn before it has ended. A function
  // among them is called instead, with the query.
  async turns(steps, options) {
    const prompts = new Prompts();
    const q = this.query(prompts, options);
    for (const step of steps) {
      if (typeof step === 'function') {
        await step(q);
        continue;
      }
      prompts.say(step);
      await this.until(q, isResult);
    }
    prompts.end();
    await this.all(q);
  }
}

const allow = (name, input) => ({ behavior: 'allow', updatedInput: input });
const deny = (message, more) => ({ behavior: 'deny', message, ...more });
const reader = [{ name: 'reader', description: 'Reads files.', systemPrompt: 'You read files.', level: 'session', tools: ['read_file'] }];
const helper = { name: 'helper', description: 'Helps.', systemPrompt: 'You help.', level: 'session' };
const calc = (run) => ({ calc: run.calculator(sdk, z.number()) });
const ext = () => ({ ext: { command: 'python3', args: [process.env.MCP_SERVER] } });

async function interrupted(run, wanted, options) {
  const prompts = new Prompts('begin');
  const q = run.query(prompts, options);
  await wanted(q);
  const first = run.rest ?? run.until(q, isResult); // reading goes on: an interrupt is answered among the messages
  await q.interrupt();
  run.emit('interrupted');
  await first;
  prompts.say('and now?').end();
  await run.all(q);
}

// aborted aborts when wanted has seen enough.
async function aborted(run, wanted, prompt = 'begin') {
  const abortController = new AbortController();
  const q = run.query(prompt, { abortController, includePartialMessages: true });
  try {
    await wanted(q, abortController);
    abortController.abort();
    await run.all(q);
  } catch (e) {
    run.emit('aborted', { abort: sdk.isAbortError(e), message: e.message });
  }
  await q.close();
  await q.close();
}

const scenarios = {
  simple: (run) => run.ask('hello'),
  multi_turn: (run) => run.turns(['my number is 7', 'what is my number?']),
  streamed_prompts: (run) => run.ask(new Prompts('my number is 7', 'what is my number?').end()),
  partial: (run) => run.ask('hello', { includePartialMessages: true }),
  no_partial: (run) => run.ask('hello'),
  stderr_silent: (run) => run.ask('hello', { stderr: (text) => run.emit('stderr', { text }) }),
  async no_executable(run) {
    try {
      await run.ask('hello', { pathToQwenExecutable: '/no/such/program' });
    } catch (e) {
      run.emit('refused', { message: e.message });
    }
  },

  ask_allow: (run) => run.turns(['write it'], { canUseTool: run.asked(allow) }),
  ask_deny: (run) => run.turns(['write it'], { canUseTool: run.asked(deny('not this file')) }),
  ask_deny_interrupt: (run) => run.turns(['write it'], { canUseTool: run.asked(deny('stop at once', { interrupt: true })) }),
  ask_updated_input: (run) =>
    run.turns(['write it'], { canUseTool: run.asked((_, input) => ({ behavior: 'allow', updatedInput: { ...input, content: 'changed' } })) }),
  ask_empty_input: (run) => run.turns(['write it'], { canUseTool: run.asked({ behavior: 'allow', updatedInput: {} }) }),
  ask_raises: (run) =>
    run.turns(['write it'], {
      canUseTool: run.asked(() => {
        throw new Error('the callback broke');
      }),
    }),
  ask_one_shot: (run) => run.ask('write it', { canUseTool: run.asked(allow) }),
  ask_nobody: (run) => run.ask('write it'),
  async ask_never(run) {
    await run.turns(['write it'], { canUseTool: run.asked(() => new Promise(() => {})), timeout: { canUseTool: 300 } });
  },
  // The callback holds everything up, the SDK's own clock included, so that its
  // answer comes after the program's time for it.
  async ask_late(run) {
    const late = (name, input) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      return allow(name, input);
    };
    await run.turns(['write it', 'and now?'], { canUseTool: run.asked(late), timeout: { canUseTool: 200 } });
  },
  async ask_eof(run) {
    const asked = once(), go = once();
    const prompts = new Prompts('hello');
    const q = run.query(prompts, {
      canUseTool: run.asked(async (name, input) => {
        asked.done();
        await go.promise;
        return allow(name, input);
      }),
    });
    await run.until(q, isResult);
    prompts.say('write it');
    const rest = run.all(q);
    await asked.promise;
    prompts.end();
    q.endInput();
    // The program must not wait for what can't come any more; the SDK reads
    // on only once the callback has returned.
    go.done();
    await rest;
  },
  ask_oversize: (run) => run.turns(['write it'], { canUseTool: run.asked(allow) }),

  mcp_sdk: (run) => run.ask('use the tools', { mcpServers: calc(run), permissionMode: 'yolo' }),
  async mcp_sdk_slow(run) {
    const q = run.query('wait', { mcpServers: calc(run), permissionMode: 'yolo' });
    await run.until(q, isToolUse);
    writeFileSync(join(run.cwd, 'go'), '');
    await run.all(q);
  },
  fifty_calls: (run) => run.turns(['add'], { mcpServers: calc(run), canUseTool: run.asked(allow) }),
  async mcp_external(run) {
    const q = run.query(new Prompts('multiply', 'again').end(), { mcpServers: ext(), permissionMode: 'yolo' });
    await run.all(q);
  },
  mcp_external_asks: (run) =>
    run.turns(['multiply', 'again'], { mcpServers: ext(), canUseTool: run.asked({ behavior: 'allow', updatedInput: {} }) }),
  mcp_external_broken: (run) => run.turns(['hello', async (q) => run.emit('status', { servers: await q.mcpServerStatus() })], { mcpServers: { ext: { command: 'false' } } }),

  agents: (run) => run.ask('delegate', { agents: [...reader, helper], permissionMode: 'yolo' }),
  agents_none: (run) => run.ask('hello', { agents: [] }),

  interrupt_stream: (run) => interrupted(run, (q) => run.until(q, isDelta), { includePartialMessages: true }),
  async interrupt_tool(run) {
    const started = async (q) => {
      await run.until(q, isToolUse);
      await run.untilFile('started');
    };
    await interrupted(run, started, { permissionMode: 'yolo' });
  },
  // While the callback runs the SDK reads nothing: it answers a question that
  // the interrupt has ended.
  async interrupt_question(run) {
    const asked = once(), gate = once();
    const late = async (name, input) => {
      asked.done();
      await gate.promise;
      return allow(name, input);
    };
    const open = async (q) => {
      run.rest = run.until(q, isResult);
      await asked.promise;
      setImmediate(gate.done); // once the interrupt is written
    };
    await interrupted(run, open, { canUseTool: run.asked(late) });
  },
  interrupt_retry: (run) => interrupted(run, (q) => run.until(q, (m) => m.type === 'system' && m.subtype === 'retry')),
  async interrupt_idle(run) {
    const prompts = new Prompts();
    const q = run.query(prompts);
    await q.interrupt();
    run.emit('interrupted');
    prompts.say('hello').end();
    await run.all(q);
  },
  set_model: (run) => run.turns(['hello', (q) => q.setModel('gpt-test-2'), 'hello', (q) => q.setModel('gpt-test-3'), 'hello']),
  async set_mode(run) {
    const steps = [
      'write it',
      (q) => q.setPermissionMode('auto-edit'),
      'write it',
      (q) => q.setPermissionMode('plan'),
      'write it',
      (q) => q.setPermissionMode('yolo'),
      'run it',
    ];
    await run.turns(steps, { canUseTool: run.asked(deny('asked')) });
  },
  usage_info: (run) => run.turns(['hello', async (q) => run.emit('usage', { data: await q.getUsageInfo?.() })]),
  // What the files of the program that we stand for say holds where the host says nothing.
  settings_files: (run) => {
    const home = join(run.cwd, 'qwen-home');
    run.env = { ...run.env, QWEN_HOME: home };
    mkdirSync(home);
    writeFileSync(join(home, 'settings.json'), JSON.stringify({ model: { name: 'own-model' }, mcpServers: ext() }));
    return run.turns(['multiply', async (q) => run.emit('status', { servers: await q.mcpServerStatus() })], { model: undefined, permissionMode: 'yolo' });
  },
  command_fails: (run) => run.turns(['/mode no-such-mode', 'hello']),
  context_usage: (run) => run.turns(['hello', async (q) => run.emit('usage', { data: await q.getContextUsage(true) })]),
  commands: (run) => run.turns(['hello', async (q) => run.emit('commands', { data: await q.supportedCommands() })]),
  async closed(run) {
    const q = run.query('hello');
    await run.all(q);
    await q.close();
    for (const call of ['setPermissionMode', 'setModel', 'interrupt']) {
      try {
        await q[call]('plan');
        run.emit('answered', { call });
      } catch (e) {
        run.emit('refused', { message: e.message });
      }
    }
  },
  async input_ended(run) {
    const q = run.query(new Prompts('hello'));
    await run.until(q, (m) => m.type === 'assistant');
    q.endInput();
    await run.all(q);
    try {
      await q.setPermissionMode('yolo');
    } catch (e) {
      run.emit('refused', { message: e.message });
    }
  },
  abort_stream: (run) => aborted(run, (q) => run.until(q, isDelta)),
  abort_at_once: (run) => aborted(run, async () => {}),
  abort_assistant: (run) => aborted(run, (q) => run.until(q, (m) => m.type === 'assistant')),

  // Permission modes and lists of tools.
  default_reads: (run) => run.ask('read it', { canUseTool: run.asked(deny('asked')) }),
  yolo: (run) => run.ask('write and run', { permissionMode: 'yolo', canUseTool: run.asked(deny('asked')) }),
  plan: (run) => run.ask('write and run', { permissionMode: 'plan', canUseTool: run.asked(allow) }),
  auto_edit: (run) => run.ask('write it', { permissionMode: 'auto-edit', canUseTool: run.asked(deny('asked')) }),
  core_tools: (run) => run.ask('list and write', { coreTools: ['write_file'], permissionMode: 'yolo' }),
  core_tools_none: (run) => run.ask('hello', { coreTools: [] }),
  exclude_write: (run) => run.ask('write it', { excludeTools: ['write_file'], permissionMode: 'yolo', allowedTools: ['write_file'] }),
  exclude_env: (run) => run.ask('read both', { excludeTools: ['Read(.env)'], permissionMode: 'yolo' }),
  exclude_rm: (run) => run.ask('remove', { excludeTools: ['Bash(rm *)'], permissionMode: 'yolo' }),
  // A command without * is the beginning of commands; other spellings are of no harm.
  exclude_prefix: (run) => run.ask('remove', { excludeTools: ['ShellTool(rm)', 'WebFetch(example.com)', 'GlobTool', 'Lsp(x)'], permissionMode: 'yolo' }),
  allow_prefix: (run) => run.ask('touch and rm', { allowedTools: ['ShellTool(touch)', 'TodoWrite(x)'], canUseTool: run.asked(deny('not that')) }),
  exclude_unknown: (run) => run.ask('write it', { excludeTools: ['no_such_tool'], allowedTools: ['no_such_tool'], permissionMode: 'yolo' }),
  allow_tools: (run) => run.ask('write it', { allowedTools: ['write_file', 'read_file'], canUseTool: run.asked(deny('asked')) }),
  allow_patterns: (run) => run.ask('touch and rm', { allowedTools: ['ShellTool(touch *)'], canUseTool: run.asked(deny('not that')) }),
  allow_edit_pattern: (run) => run.ask('write config and env', { allowedTools: ['Edit(*.json)'], canUseTool: run.asked(deny('not that')) }),
  plan_beats_allow: (run) => run.ask('write it', { permissionMode: 'plan', allowedTools: ['write_file'], canUseTool: run.asked(allow) }),

  max_turns: (run) => run.ask('go on', { maxSessionTurns: 2, permissionMode: 'yolo' }),
  api_error: (run) => run.ask('hello'),
  api_error_goes_on: (run) => run.turns(['hello', 'hello']),
  async eof_tool(run) {
    const q = run.query(new Prompts('begin'), { permissionMode: 'yolo' });
    await run.until(q, isToolUse);
    await run.untilFile('started');
    q.endInput();
    writeFileSync(join(run.cwd, 'go'), '');
    await run.all(q);
  },
  big_answer: (run) => run.ask('say much'),
  big_output: (run) => run.ask('print much', { permissionMode: 'yolo' }),
  big_prompt: (run) => run.ask('x'.repeat(2 << 20)),
  async consumer_killed(run) {
    const q = run.query(new Prompts('begin'), { permissionMode: 'yolo' });
    const all = run.all(q);
    await run.untilFile('started');
    run.emit('kill_me');
    await all;
  },
  async quick_start(run) {
    const result = sdk.query({
      prompt: 'What files are in the current directory?',
      options: { cwd: run.cwd, env: run.env, pathToQwenExecutable: AGENT },
    });
    for await (const message of result) run.saw(message);
  },
};

await serve(scenarios, Run);
