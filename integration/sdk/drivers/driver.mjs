// What the two TypeScript drivers share: they take scenarios on stdin, run them
// side by side and say on stdout what the SDK's user sees, in the words that
// claude.py uses as well.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const AGENT = process.env.AGENT;

const textOf = (content) => (Array.isArray(content) ? content.map((b) => b.text ?? '').join('') : (content ?? ''));

// Base is one scenario: its folder, its environment, and what it says.
export class Base {
  constructor(spec) {
    this.id = spec.id;
    this.cwd = spec.cwd;
    this.env = spec.env;
  }

  emit(ev, more = {}) {
    process.stdout.write(JSON.stringify({ id: this.id, ev, ...more }) + '\n');
  }

  block(block, parent, text) {
    switch (block.type) {
      case 'text':
        return this.emit(text, { text: block.text, parent });
      case 'thinking':
        return this.emit('thinking', { text: block.thinking, parent });
      case 'tool_use':
        return this.emit('tool_use', { name: block.name, input: block.input, use: block.id, parent });
      case 'tool_result':
        return this.emit('tool_result', { text: textOf(block.content), error: Boolean(block.is_error), use: block.tool_use_id, parent });
      default:
        return this.emit('block', { kind: block.type });
    }
  }

  // saw says what a message is, and returns it.
  saw(m) {
    const parent = m.parent_tool_use_id ?? null;
    switch (m.type) {
      case 'assistant':
      case 'user':
        if (typeof m.message.content === 'string') this.emit('user_text', { text: m.message.content, parent });
        else for (const b of m.message.content) this.block(b, parent, m.type === 'user' ? 'user_text' : 'text');
        break;
      case 'result':
        this.emit('result', m);
        break;
      case 'stream_event':
        this.emit('partial', { type: m.event.type, delta: m.event.delta?.type, text: m.event.delta?.text ?? m.event.delta?.thinking ?? '' });
        break;
      case 'system':
        this.emit(m.subtype === 'init' ? 'init' : 'system', { subtype: m.subtype, data: m });
        break;
      default:
        this.emit('message', { kind: m.type });
    }
    return m;
  }

  // untilFile waits until a tool has made a file in the working folder.
  async untilFile(name) {
    while (!existsSync(join(this.cwd, name))) await new Promise((r) => setTimeout(r, 10));
  }

  // until reads messages up to the first that wanted accepts.
  async until(q, wanted) {
    for (;;) {
      const { value, done } = await q.next();
      if (done) throw new Error('the messages ended before what was waited for');
      this.saw(value);
      if (wanted(value)) return value;
    }
  }

  // all reads every message.
  async all(q) {
    for await (const m of q) this.saw(m);
  }

  // asked is a permission callback that says that it was asked and gives answer.
  asked(answer) {
    return async (name, input, options) => {
      this.emit('ask', { name, input, use: options.toolUseID, suggestions: options.suggestions ?? [], agent: options.agentID, signal: options.signal instanceof AbortSignal });
      return typeof answer === 'function' ? answer(name, input, options) : answer;
    };
  }

  // calculator is an SDK MCP server whose tools work, fail, and wait.
  calculator({ tool, createSdkMcpServer }, number) {
    const text = (t) => ({ content: [{ type: 'text', text: t }] });
    const called = (name, input) => this.emit('call', { name, input });
    return createSdkMcpServer({
      name: 'calc',
      version: '1.0.0',
      tools: [
        tool('add', 'Adds two numbers.', { a: number, b: number }, async (args) => {
          called('add', args);
          return text(String(args.a + args.b));
        }),
        tool('fail', 'Always fails.', {}, async (args) => {
          called('fail', args);
          throw new Error('failed on purpose');
        }),
        tool('slow', 'Waits for a file.', {}, async (args) => {
          called('slow', args);
          await this.untilFile('go');
          return text('waited');
        }),
      ],
    });
  }
}

export const isResult = (m) => m.type === 'result';
export const isToolUse = (m) => m.type === 'assistant' && m.message.content.some?.((b) => b.type === 'tool_use');
export const isDelta = (m) => m.type === 'stream_event' && m.event.type === 'content_block_delta';

// once is a promise with what keeps it.
export function once() {
  let done;
  const promise = new Promise((r) => (done = r));
  return { promise, done };
}

// Prompts is an open list of prompts: say adds one, end closes it.
export class Prompts {
  #waiting = [];
  #wake = once();
  #ended = false;

  constructor(...texts) {
    texts.forEach((t) => this.say(t));
  }

  say(text, more = {}) {
    this.#waiting.push({ type: 'user', session_id: '', message: { role: 'user', content: text }, parent_tool_use_id: null, ...more });
    this.#wake.done();
    return this;
  }

  end() {
    this.#ended = true;
    this.#wake.done();
    return this;
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#waiting.length) yield this.#waiting.shift();
      if (this.#ended) return;
      await this.#wake.promise;
      this.#wake = once();
    }
  }
}

// serve runs the scenarios that stdin asks for.
export async function serve(scenarios, Run) {
  const open = [];
  for await (const line of createInterface({ input: process.stdin })) {
    const spec = JSON.parse(line);
    const run = new Run(spec);
    open.push(
      Promise.resolve()
        .then(() => scenarios[spec.scenario](run))
        .catch((e) => run.emit('raised', { type: e.constructor.name, message: e.message }))
        .finally(() => run.emit('end')),
    );
  }
  await Promise.all(open);
  process.exit(0);
}
