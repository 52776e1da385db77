// A validating client with @qwen-code/sdk: plays scenarios against the
// program and checks what the SDK makes of them. Needs the model of
// ../with-model.sh.
import { createSdkMcpServer, query, tool, type Query, type QueryOptions, type SDKMessage, type SDKResultMessage, type SDKUserMessage } from '@qwen-code/sdk';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

// Block is what is looked at of a block.
type Block = { type: string; id?: string; tool_use_id?: string };

// Run is a scenario: its folder, and the messages that came.
class Run {
  folder: string;
  seen: SDKMessage[] = [];
  options: QueryOptions;
  #prompts: SDKUserMessage[] = [];
  #wake = () => {};
  #ended = false;

  constructor(name: string, tmp: string) {
    this.folder = join(tmp, name);
    mkdirSync(this.folder);
    this.options = { pathToQwenExecutable: process.env.AGENT, cwd: this.folder };
  }

  // open begins a conversation; its prompts are sent by turn.
  open(options: QueryOptions = {}): Query {
    return query({ prompt: this.#input(), options: { ...this.options, ...options } });
  }

  async *#input() {
    while (!this.#ended || this.#prompts.length) {
      const next = this.#prompts.shift();
      if (next) yield next;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  say(content: string) {
    this.#prompts.push({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '' });
    this.#wake();
  }

  // turn sends a prompt and returns the result of its turn. Each message is
  // offered to look.
  async turn(q: Query, prompt: string, look: (m: SDKMessage) => Promise<void> = async () => {}): Promise<SDKResultMessage> {
    this.say(prompt);
    for (;;) {
      const { value, done } = await q.next();
      if (done) throw new Error('the messages ended before the result');
      this.seen.push(value);
      await look(value);
      if (value.type === 'result') return value;
    }
  }

  // close ends the input and waits for the program's end.
  async close(q: Query) {
    this.#ended = true;
    this.#wake();
    for await (const m of q) this.seen.push(m);
  }

  note() {
    const path = join(this.folder, 'note.txt');
    return existsSync(path) ? readFileSync(path, 'utf8') : null;
  }

  blocks(): Block[] {
    return this.seen.flatMap((m) => ((m.type === 'assistant' || m.type === 'user') && Array.isArray(m.message.content) ? (m.message.content as Block[]) : []));
  }

  // check is what holds for every conversation.
  check() {
    assert.equal(this.seen.at(-1)?.type, 'result', 'the last message is a result');
    assert.ok(this.seen.every((m) => m.uuid && m.session_id), 'each message has a uuid and the id of the session');
    assert.equal(new Set(this.seen.map((m) => m.session_id)).size, 1, 'one session');
    const calls = this.blocks().filter((b) => b.type === 'tool_use').map((b) => b.id);
    const answers = this.blocks().filter((b) => b.type === 'tool_result').map((b) => b.tool_use_id);
    assert.deepEqual(answers.sort(), calls.sort(), 'each call has its result');
  }
}

const answerOf = (r: SDKResultMessage) => (r.is_error ? r.error?.message : r.result);
const isDelta = (m: SDKMessage) => m.type === 'stream_event' && m.event.type === 'content_block_delta';

// writeNote is a turn whose one call is answered.
async function writeNote(run: Run, answer: Awaited<ReturnType<NonNullable<QueryOptions['canUseTool']>>>) {
  const asked: unknown[] = [];
  const q = run.open({
    canUseTool: async (name, input) => {
      asked.push([name, input]);
      return answer;
    },
  });
  const result = await run.turn(q, 'Write a note.');
  await run.close(q);
  assert.deepEqual(asked, [['write_file', { file_path: 'note.txt', content: 'Buy milk.\n' }]]);
  return result;
}

const scenarios: Record<string, (run: Run) => Promise<void>> = {
  async question(run) {
    for await (const m of query({ prompt: 'Hello!', options: run.options })) run.seen.push(m);
    assert.equal(answerOf(run.seen.at(-1) as SDKResultMessage), 'Hello, what can I do for you?');
  },
  async conversation(run) {
    const q = run.open();
    await run.turn(q, 'My number is 7.');
    assert.equal(answerOf(await run.turn(q, 'What is my number?')), 'Your number is 7.');
    await run.close(q);
  },
  async partial(run) {
    const q = run.open({ includePartialMessages: true });
    const result = await run.turn(q, 'Hello!');
    await run.close(q);
    const pieces = run.seen.flatMap((m) => (m.type === 'stream_event' && m.event.type === 'content_block_delta' && m.event.delta.type === 'text_delta' ? [m.event.delta.text] : []));
    assert.ok(pieces.length > 1);
    assert.equal(pieces.join(''), answerOf(result));
  },
  async allow(run) {
    await writeNote(run, { behavior: 'allow', updatedInput: { file_path: 'note.txt', content: 'Buy milk.\n' } });
    assert.equal(run.note(), 'Buy milk.\n');
  },
  async deny(run) {
    await writeNote(run, { behavior: 'deny', message: 'not now' });
    assert.equal(run.note(), null);
    assert.match(JSON.stringify(run.blocks()), /not now/);
  },
  async changed_input(run) {
    await writeNote(run, { behavior: 'allow', updatedInput: { file_path: 'note.txt', content: 'Buy bread.\n' } });
    assert.equal(run.note(), 'Buy bread.\n');
  },
  async mcp_tool(run) {
    const add = tool('add', 'Adds two numbers.', { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: 'text' as const, text: String(a + b) }] }));
    const q = run.open({ mcpServers: { calc: createSdkMcpServer({ name: 'calc', tools: [add] }) }, allowedTools: ['mcp__calc__add'] });
    assert.equal(answerOf(await run.turn(q, 'Add two and three.')), 'It is 5.');
    await run.close(q);
  },
  async permission_mode(run) {
    const q = run.open();
    await q.setPermissionMode('auto-edit');
    await run.turn(q, 'Write a note.');
    await run.close(q);
    assert.equal(run.note(), 'Buy milk.\n');
  },
  async model(run) {
    const q = run.open();
    await q.setModel('gpt-5-mini');
    assert.equal(answerOf(await run.turn(q, 'Which model are you?')), 'I am gpt-5-mini.');
    await run.close(q);
  },
  async interrupt(run) {
    const q = run.open({ includePartialMessages: true });
    let interrupted = false;
    const result = await run.turn(q, 'Recite a poem.', async (m) => {
      if (isDelta(m) && !interrupted) {
        interrupted = true;
        await q.interrupt();
      }
    });
    assert.ok(result.is_error); // as its SDK knows it from qwen
    assert.equal((await run.turn(q, 'Hello!')).subtype, 'success');
    await run.close(q);
  },
  async commands(run) {
    const q = run.open();
    const { commands } = (await q.supportedCommands()) as { commands: string[] };
    assert.ok(commands.includes('compress'), commands.join(' '));
    await run.turn(q, 'Hello!');
    await run.close(q);
  },
  async model_error(run) {
    const q = run.open();
    const result = await run.turn(q, 'Please fail.');
    assert.ok(result.is_error);
    assert.match(answerOf(result) ?? '', /as it was asked to/);
    assert.equal((await run.turn(q, 'Hello!')).is_error, false);
    await run.close(q);
  },
};

const tmp = mkdtempSync(join(tmpdir(), 'validate-'));
let failed = 0;
for (const [name, play] of Object.entries(scenarios)) {
  const run = new Run(name, tmp);
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('took over a minute')), 60_000).unref());
  try {
    await Promise.race([play(run), late]);
    run.check();
    console.log('ok  ', name);
  } catch (e) {
    failed++;
    console.log('FAIL', name, String(e));
  }
}
rmSync(tmp, { recursive: true, force: true });
if (failed) console.error(`${failed} failed`);
process.exit(failed ? 1 : 0);
