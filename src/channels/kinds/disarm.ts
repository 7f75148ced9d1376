/** Untrusted text that another service passes on to chats: through an Alertmanager, PagerDuty or Apprise. */

/**
 * Begin a mention, a channel, or a link under other words (`<https://...|words>`, `[words](https://...)`) in Slack,
 * Mattermost and others, which these services do not escape.
 */
const CHAT_CONTROLS = /<(?=[!@#]|[a-z][a-z\d+.-]{0,20}:)|@(?=here|channel|everyone|all\b)|\](?=[([])/gi

/** With a zero-width space in what a chat would take for a control sequence: jobs and names are untrusted. */
export function disarmForChats(text: string): string {
  return text.replace(CHAT_CONTROLS, '$&\u200b')
}
