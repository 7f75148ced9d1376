/**
 * Text with a zero-width space in what chats would make links and mentions of. Names, the output of jobs and reasons
 * that quote a cluster are untrusted: all who may ping a check choose them. The description is written by a person who
 * may configure the check: its addresses stay links, because it is the place for a runbook.
 */

import { splitAddresses } from './addresses.ts'

const INVISIBLE = '\u200b'

/**
 * What Slack, Mattermost, Telegram and Matrix know: `@name`, `#room`, `~channel`, `$USD`, `/command`, `https://`,
 * `example.com`, `+1202`, `<!here>`, code in backticks, `[words](address)`.
 */
const LINKED =
  /[@#$~](?=[\p{L}\p{N}_])|`|<(?=[!@#:]|[a-z][a-z\d+.-]{0,20}:)|(?<![\p{L}\p{N}_/])\/(?=[\p{L}\p{N}_])|:(?=\/\/)|www(?=\.)|\.(?=[\p{L}\p{N}])|\+(?=\d)|\](?=[([])/giu

/** For a chat: nothing of it is a link or a mention. */
export const disarm = (text: string) => text.replace(LINKED, `$&${INVISIBLE}`)

/** Notify all who are in a chat, wherever they stand. */
const CALLS_ALL = String.raw`@(?=here|channel|everyone|all\b)`

/**
 * Begin a mention, a channel, or a link under other words (`<https://...|words>`, `[words](https://...)`) in Slack,
 * Mattermost and others, which Alertmanager, PagerDuty and Apprise do not escape. Mail addresses stay whole.
 */
const CHAT_CONTROLS = new RegExp(
  String.raw`<(?=[!@#]|[a-z][a-z\d+.-]{0,20}:)|(?<![\p{L}\p{N}])@(?=[\p{L}\p{N}_])|${CALLS_ALL}|\](?=[([])`,
  'giu',
)

/** For a service that passes it on to chats: nothing of it is a mention, or a link under other words. */
export const disarmForChats = (text: string) => text.replace(CHAT_CONTROLS, `$&${INVISIBLE}`)

/**
 * Beyond that, what Telegram and Mattermost take for a mention, an address with another scheme, and what begins a link
 * under other words before an address (`<`, `[words]: `). At its end, a piece is followed by an address.
 */
const NAMES_AND_SCHEMES = /(?<![\p{L}\p{N}_])@(?=[\p{L}\p{N}_]|$)|<$|\](?=:)|:(?=\/\/)/gu

/**
 * For a chat: no mention, no link under other words, and no address with another scheme. All else stays as it is, so
 * that a command that is copied from a runbook works.
 */
export const disarmDescription = (description: string) =>
  splitAddresses(description)
    .map(({ text, isAddress }) => {
      const disarmed = disarmForChats(text)
      return isAddress && disarmed === text ? text : disarmed.replace(NAMES_AND_SCHEMES, `$&${INVISIBLE}`)
    })
    .join('')

/** Three backticks would end a code block, and the text after them would be parsed for mentions and links. */
export const breakFences = (text: string) => text.replace(/`{3,}/g, (fence) => [...fence].join(INVISIBLE))
