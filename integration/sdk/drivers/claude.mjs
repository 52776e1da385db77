// Runs scenarios with the TypeScript Claude Agent SDK; see driver.mjs.
import * as sdk from '@anthropic-ai/claude-agent-sdk';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { AGENT, Base, Prompts, isDelta, isResult, isToolUse, once, serve } from './driver.mjs';

const MODEL = 'claude-sonnet-4-5';

class Run extends Base {
  query(prompt, options = {}) {
    return sdk.query({ prompt, options: { pathToClaudeCodeExecutable: AGENT, cwd: this.cwd, env: this.env, model: MODEL, ...options } });
  }

  // ask is a one-shot query.
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

  // hook is a list with one hook that says that it was called and gives output.
  hook(output, more = {}) {
    const called = async (input, toolUseID) => {
      this.emit('hook', { event: input.hook_event_name, input, use: toolUseID });
      if (output instanceof Error) throw output;
      return output;
    };
    return [{ hooks: [called], ...more }];
  }

  async withHooks(hooks, prompt = 'run it', options = {}) {
    await this.turns([prompt], { hooks, canUseTool: this.asked(allow), ...options });
  }

  async status(q) {
    this.emit('status', { servers: (await q.mcpServerStatus()).map(({ name, status }) => ({ name, status })) });
  }
}

const allow = (name, input) => ({ behavior: 'allow', updatedInput: input });
const deny = (message, more) => ({ behavior: 'deny', message, ...more });
const pre = (more) => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...more } });
const reader = { reader: { description: 'Reads files.', prompt: 'You read files.', tools: ['Read'] } };
const calc = (run) => ({ calc: run.calculator(sdk, z.number()) });

// interrupted interrupts when wanted has seen enough; the session goes on.
async function interrupted(run, wanted, options) {
  const prompts = new Prompts('begin');
  const q = run.query(prompts, options);
  await wanted(q);
  await q.interrupt();
  run.emit('interrupted');
  await (run.rest ?? run.until(q, isResult));
  prompts.say('and now?').end();
  await run.all(q);
}

const scenarios = {
  simple: (run) => run.ask('hello'),
  multi_turn: (run) => run.turns(['my number is 7', 'what is my number?']),
  streamed_prompts: (run) => run.ask(new Prompts('my number is 7', 'what is my number?').end()),
  partial: (run) => run.ask('hello', { includePartialMessages: true }),
  no_partial: (run) => run.ask('hello'),
  stderr_silent: (run) => run.ask('hello', { stderr: (text) => run.emit('stderr', { text }) }),
  async origin(run) {
    for (const more of [{ origin: { kind: 'human' } }, {}]) await run.ask(new Prompts().say('hello', more).end());
  },

  ask_allow: (run) => run.turns(['write it'], { canUseTool: run.asked(allow) }),
  ask_allow_bare: (run) => run.turns(['write it'], { canUseTool: run.asked({ behavior: 'allow' }) }),
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
  async ask_updated_permissions(run) {
    const updatedPermissions = [{ type: 'addRules', rules: [{ toolName: 'Bash', ruleContent: 'touch:*' }], behavior: 'allow', destination: 'session' }];
    await run.turns(['touch a', 'touch b'], { canUseTool: run.asked((_, input) => ({ behavior: 'allow', updatedInput: input, updatedPermissions })) });
  },
  ask_one_shot: (run) => run.ask('write it', { canUseTool: run.asked(allow) }),
  ask_nobody: (run) => run.ask('write it'),
  async ask_late(run) {
    const gate = once(), asked = once();
    const late = async (name, input, { signal }) => {
      signal.addEventListener('abort', () => run.emit('withdrawn'));
      asked.done();
      await gate.promise;
      return allow(name, input);
    };
    const prompts = new Prompts('write it');
    const q = run.query(prompts, { canUseTool: run.asked(late) });
    const first = run.until(q, isResult);
    await asked.promise;
    await q.interrupt();
    await first;
    gate.done();
    prompts.say('and now?').end();
    await run.all(q);
  },
  async ask_never(run) {
    const asked = once();
    const never = () => (asked.done(), new Promise(() => {}));
    const abortController = new AbortController();
    const q = run.query(new Prompts('write it'), { canUseTool: run.asked(never), abortController });
    const all = run.all(q);
    await asked.promise;
    abortController.abort();
    await all;
  },
  // The SDK closes stdin after the first result, whatever is still to be done.
  ask_eof: (run) => run.ask(new Prompts('hello', 'write it').end(), { canUseTool: run.asked(allow) }),
  ask_oversize: (run) => run.turns(['write it'], { canUseTool: run.asked(allow) }),

  hook_pre_deny: (run) =>
    run.withHooks({ PreToolUse: run.hook(pre({ permissionDecision: 'deny', permissionDecisionReason: 'no such thing' }), { matcher: 'Bash' }) }),
  hook_pre_allow: (run) => run.withHooks({ PreToolUse: run.hook(pre({ permissionDecision: 'allow' })) }),
  hook_pre_ask: (run) => run.withHooks({ PreToolUse: run.hook(pre({ permissionDecision: 'ask', permissionDecisionReason: 'look twice' })) }),
  hook_pre_defer: (run) => run.withHooks({ PreToolUse: run.hook(pre({ permissionDecision: 'defer' })) }),
  hook_pre_updated_input: (run) =>
    run.withHooks({ PreToolUse: run.hook(pre({ permissionDecision: 'allow', updatedInput: { command: 'echo changed' } })) }),
  hook_pre_context: (run) => run.withHooks({ PreToolUse: run.hook(pre({ additionalContext: 'the moon is full' })) }),
  hook_pre_other_tool: (run) => run.withHooks({ PreToolUse: run.hook({}, { matcher: 'Write|Edit' }) }),
  hook_pre_raises: (run) => run.withHooks({ PreToolUse: run.hook(new Error('the hook broke')) }),
  hook_pre_stop: (run) => run.withHooks({ PreToolUse: run.hook({ continue: false, stopReason: 'enough' }) }),
  hook_pre_block: (run) => run.withHooks({ PreToolUse: run.hook({ decision: 'block', reason: 'the old way' }) }),
  hook_async: (run) => run.withHooks({ PreToolUse: run.hook({ async: true, asyncTimeout: 1000 }) }),
  async hook_timeout(run) {
    const never = (input, use) => (run.emit('hook', { event: input.hook_event_name, input, use }), new Promise(() => {}));
    await run.withHooks({ PreToolUse: [{ hooks: [never], timeout: 0.2 }] });
  },
  hook_post_context: (run) =>
    run.withHooks({
      PostToolUse: run.hook({ systemMessage: 'seen', suppressOutput: true, hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'the sea is calm' } }),
    }),
  hook_post_stop: (run) => run.withHooks({ PostToolUse: run.hook({ continue: false, stopReason: 'enough' }) }),
  hook_post_failure: (run) =>
    run.withHooks({
      PostToolUseFailure: run.hook({ hookSpecificOutput: { hookEventName: 'PostToolUseFailure', additionalContext: 'try the other door' } }),
    }),
  hook_prompt_context: (run) =>
    run.withHooks(
      { UserPromptSubmit: run.hook({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'today is a holiday' } }) },
      'hello',
    ),
  hook_prompt_block: (run) => run.withHooks({ UserPromptSubmit: run.hook({ decision: 'block', reason: 'not that prompt' }) }, 'hello'),
  async hook_stop_block(run) {
    let count = 0;
    const first = async (input, use) => {
      run.emit('hook', { event: input.hook_event_name, input, use });
      return ++count === 1 ? { decision: 'block', reason: 'not done yet' } : {};
    };
    await run.withHooks({ Stop: [{ hooks: [first] }] }, 'hello');
  },
  hook_compact: (run) => run.turns(['hello', '/compact'], { hooks: { PreCompact: run.hook({}) } }),
  hook_notification: (run) => run.withHooks({ Notification: run.hook({}) }),
  hook_permission_allow: (run) =>
    run.withHooks({ PermissionRequest: run.hook({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } } }) }),
  hook_permission_deny: (run) =>
    run.withHooks({
      PermissionRequest: run.hook({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'deny', message: 'the hook says no' } } }),
    }),
  hook_session: (run) => run.withHooks({ SessionStart: run.hook({}), SessionEnd: run.hook({}) }, 'hello'),
  async hook_fifty(run) {
    let waiting = 0;
    const full = once();
    const barrier = async () => {
      if (++waiting === 50) {
        run.emit('all_there');
        full.done();
      }
      await full.promise;
      return {};
    };
    await run.withHooks({ PreToolUse: [{ hooks: Array(50).fill(barrier) }] });
  },
  hook_events: (run) => run.withHooks({ PreToolUse: run.hook({}) }, 'run it', { includeHookEvents: true }),

  mcp_sdk: (run) => run.ask('use the tools', { mcpServers: calc(run), allowedTools: ['mcp__calc__add', 'mcp__calc__fail'] }),
  mcp_sdk_denied: (run) => run.ask('add', { mcpServers: calc(run) }),
  async mcp_sdk_slow(run) {
    const q = run.query(new Prompts('wait').end(), { mcpServers: calc(run), allowedTools: ['mcp__calc__slow'] });
    await run.until(q, isToolUse);
    await run.status(q);
    writeFileSync(join(run.cwd, 'go'), '');
    await run.all(q);
  },
  async mcp_external(run) {
    const mcpServers = { ext: { command: 'python3', args: [process.env.MCP_SERVER] } };
    const steps = [
      'multiply',
      (q) => run.status(q),
      (q) => q.toggleMcpServer('ext', false),
      (q) => run.status(q),
      (q) => q.toggleMcpServer('ext', true),
      (q) => q.reconnectMcpServer('ext'),
      'again',
    ];
    await run.turns(steps, { mcpServers, allowedTools: ['mcp__ext__multiply'] });
  },
  mcp_external_broken: (run) => run.turns(['hello', (q) => run.status(q)], { mcpServers: { ext: { command: 'false' } } }),
  fifty_calls: (run) => run.turns(['add'], { mcpServers: calc(run), canUseTool: run.asked(allow) }),
  async mcp_set_servers(run) {
    const set = async (q) => run.emit('set', await q.setMcpServers({ ext: { command: 'python3', args: [process.env.MCP_SERVER] } }));
    await run.turns(['hello', set, 'multiply'], { allowedTools: ['mcp__ext__multiply'] });
  },

  agents: (run) => run.ask('delegate', { agents: reader }),
  agents_text: (run) => run.ask('delegate', { agents: reader, forwardSubagentText: true }),
  agents_hooks: (run) =>
    run.withHooks({ SubagentStart: run.hook({}), SubagentStop: run.hook({}), PreToolUse: run.hook({}) }, 'delegate', { agents: reader }),
  async agents_large(run) {
    const agents = {};
    for (let i = 0; i < 20; i++) agents[`big-${i}`] = { description: 'd'.repeat(100), prompt: 'p'.repeat(13000) };
    await run.ask('hello', { agents });
  },

  interrupt_stream: (run) => interrupted(run, (q) => run.until(q, isDelta), { includePartialMessages: true }),
  async interrupt_tool(run) {
    const started = async (q) => {
      await run.until(q, isToolUse);
      await run.untilFile('started');
    };
    await interrupted(run, started, { allowedTools: ['Bash'] });
  },
  async interrupt_question(run) {
    const asked = once();
    const never = () => (asked.done(), new Promise(() => {}));
    // Reading goes on, so that the question is taken.
    const open = async (q) => void (run.rest = run.until(q, isResult), await asked.promise);
    await interrupted(run, open, { canUseTool: run.asked(never) });
  },
  interrupt_retry: (run) => interrupted(run, (q) => run.until(q, (m) => m.type === 'system' && m.subtype === 'api_retry')),
  async interrupt_idle(run) {
    const prompts = new Prompts();
    const q = run.query(prompts);
    await q.interrupt();
    run.emit('interrupted');
    prompts.say('hello').end();
    await run.all(q);
  },
  set_model: (run) => run.turns(['hello', (q) => q.setModel('claude-opus-4-5'), 'hello', (q) => q.setModel(), 'hello']),
  async set_mode(run) {
    const bogus = async (q) => {
      try {
        await q.setPermissionMode('bogus');
      } catch (e) {
        run.emit('refused', { message: e.message });
      }
    };
    const steps = ['write it', (q) => q.setPermissionMode('acceptEdits'), 'write it', (q) => q.setPermissionMode('plan'), 'write it', bogus];
    await run.turns(steps, { canUseTool: run.asked(deny('asked')) });
  },
  context_usage: (run) => run.turns(['hello', async (q) => run.emit('usage', { data: await q.getContextUsage() })]),
  async server_info(run) {
    const prompts = new Prompts();
    const q = run.query(prompts);
    run.emit('info', { data: await q.initializationResult() });
    run.emit('lists', { commands: await q.supportedCommands(), models: await q.supportedModels(), agents: await q.supportedAgents(), account: await q.accountInfo() });
    prompts.end();
    await run.all(q);
  },
  async thinking_tokens(run) {
    await run.turns([(q) => q.setMaxThinkingTokens(2048), 'hello', (q) => q.setMaxThinkingTokens(null), 'hello']);
  },
  async flag_settings(run) {
    await run.turns([(q) => q.applyFlagSettings({ permissions: { allow: ['Write'] } }), 'write it']);
  },
  async rewind_refused(run) {
    const rewind = async (q) => {
      try {
        run.emit('rewound', { data: await q.rewindFiles('00000000-0000-4000-8000-000000000000') });
      } catch (e) {
        run.emit('refused', { message: e.message });
      }
    };
    await run.turns(['hello', rewind]);
  },
  async stop_task_unknown(run) {
    const stop = async (q) => {
      try {
        await q.stopTask('no-such-task');
      } catch (e) {
        run.emit('refused', { message: e.message });
      }
    };
    await run.turns([stop]);
  },

  async structured(run) {
    const schema = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] };
    await run.ask('how many?', { outputFormat: { type: 'json_schema', schema } });
  },
  max_turns: (run) => run.ask('go on', { maxTurns: 2, allowedTools: ['Bash'] }),
  api_error: (run) => run.ask('hello'),
  api_error_goes_on: (run) => run.turns(['hello', 'hello']),
  async eof_tool(run) {
    const q = run.query(new Prompts('begin').end(), { allowedTools: ['Bash'] });
    await run.until(q, isToolUse);
    await run.untilFile('started');
    writeFileSync(join(run.cwd, 'go'), '');
    await run.all(q);
  },
  big_answer: (run) => run.ask('say much'),
  big_output: (run) => run.ask('print much', { allowedTools: ['Bash'] }),
  big_prompt: (run) => run.ask('x'.repeat(2 << 20)),
  async consumer_killed(run) {
    const q = run.query(new Prompts('begin'), { allowedTools: ['Bash'] });
    const all = run.all(q);
    await run.untilFile('started');
    run.emit('kill_me');
    await all;
  },
  async quick_start(run) {
    for await (const message of sdk.query({ prompt: 'What is 2 + 2?', options: { pathToClaudeCodeExecutable: AGENT, cwd: run.cwd, env: run.env } })) {
      run.saw(message);
    }
  },
};

await serve(scenarios, Run);
