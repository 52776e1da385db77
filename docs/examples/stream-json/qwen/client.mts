// A small client with @qwen-code/sdk: node client.mts PROMPT...
//
// Each prompt is a turn of one conversation. Prints what the model says, and
// asks on the terminal before a tool does what has to be asked about.
import { query, type CanUseTool, type SDKUserMessage } from '@qwen-code/sdk';
import { createInterface } from 'node:readline/promises';

const terminal = createInterface({ input: process.stdin });
const typed = terminal[Symbol.asyncIterator]();

const canUseTool: CanUseTool = async (tool, input) => {
  process.stdout.write(`May it run ${tool} ${JSON.stringify(input)}? [y/N] `);
  const reply = await typed.next();
  console.log();
  return reply.value === 'y' ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message: 'The user said no.' };
};

// turnOver is called when a turn has its result: the next prompt may go.
let turnOver = () => {};

async function* prompts(): AsyncGenerator<SDKUserMessage> {
  for (const content of process.argv.slice(2)) {
    console.log('>', content);
    const over = new Promise<void>((resolve) => (turnOver = resolve));
    yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '' };
    await over;
  }
}

const messages = query({
  prompt: prompts(),
  options: {
    pathToQwenExecutable: process.env.AGENT, // the only line that is about us
    canUseTool,
  },
});
for await (const message of messages) {
  if (message.type === 'assistant') {
    for (const block of message.message.content) {
      if (block.type === 'text') console.log(block.text);
      if (block.type === 'tool_use') console.log(`[${block.name}]`);
    }
  } else if (message.type === 'result') {
    if (message.is_error) {
      console.error(message.error?.message);
      process.exit(1);
    }
    turnOver();
  }
}
terminal.close();
