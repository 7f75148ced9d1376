/**
 * Untrusted text, with a zero-width space in what chats would make links and mentions of: names and the output of jobs,
 * and reasons that quote a cluster. The two differ, as a runbook's address stays a link where texts are passed on.
 */

const INVISIBLE = '\u200b'

/**
 * What Slack, Mattermost, Telegram and Matrix know: `@name`, `#room`, `~channel`, `$USD`, `/command`, `https://`,
 * `example.com`, `+1202`, `<!here>`, code in backticks, `[words](address)`.
 */
const LINKED =
  /[@#$~](?=[\p{L}\p{N}_])|`|<(?=[!@#:]|[a-z][a-z\d+.-]{0,20}:)|(?<![\p{L}\p{N}_/])\/(?=[\p{L}\p{N}_])|:(?=\/\/)|www(?=\.)|\.(?=[\p{L}\p{N}])|\+(?=\d)|\](?=[([])/giu

/** For a chat: nothing of it is a link or a mention. */
export const disarm = (text: string) => text.replace(LINKED, `$&${INVISIBLE}`)

/**
 * Begin a mention, a channel, or a link under other words (`<https://...|words>`, `[words](https://...)`) in Slack,
 * Mattermost and others, which Alertmanager, PagerDuty and Apprise do not escape.
 */
const CHAT_CONTROLS = /<(?=[!@#]|[a-z][a-z\d+.-]{0,20}:)|@(?=here|channel|everyone|all\b)|\](?=[([])/gi

/** For a service that passes it on to chats: nothing of it is a mention, or a link under other words. */
export const disarmForChats = (text: string) => text.replace(CHAT_CONTROLS, `$&${INVISIBLE}`)

/** Three backticks would end a code block, and the text after them would be parsed for mentions and links. */
export const breakFences = (text: string) => text.replace(/`{3,}/g, (fence) => [...fence].join(INVISIBLE))
