/** Saved settings that this build cannot read, as answers show them. (rest-contract 2.2) */
import { isUnreadable } from '../src/kernel/codec.ts';
import { builder } from './builder.ts';

export const ConfigurationReadError = builder.objectRef<{ readonly code: string; readonly field: string }>('ConfigurationReadError').implement({
  description: 'Some saved settings could not be read; they are null, without defaults.',
  fields: (t) => ({ code: t.exposeString('code'), field: t.exposeString('field') }),
});

export const readError = (settings: object) => (isUnreadable(settings) ? { code: 'SAVED_CONFIGURATION_UNREADABLE', field: settings.unreadable } : null);

/** A member of settings, or null while they cannot be read. */
export const saved = <Settings extends object, Value>(settings: Settings, read: (settings: Exclude<Settings, { unreadable: string }>) => Value): Value | null =>
  isUnreadable(settings) ? null : read(settings as Exclude<Settings, { unreadable: string }>);
