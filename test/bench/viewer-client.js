/** Calls back with every change that a viewer tells. Resolves, once it follows, with what ends that. */
export async function followChanges(ask, onChange) {
  const left = new AbortController();
  const { body } = await ask('/api/changes', { signal: left.signal });
  const read = async () => {
    let text = '';
    for await (const bytes of body) {
      text += Buffer.from(bytes);
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) await onChange(JSON.parse(data));
      }
    }
  };
  const over = read().catch(() => {});
  return async () => {
    left.abort();
    await over;
  };
}
