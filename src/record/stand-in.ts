/**
 * An object that stands for another one and is it in everything but a few members: the host's own object stays as it is, and
 * whatever else it has, now or in a later version, is there. Methods run on the object itself, so that its private fields are
 * there; what they hand on as `this`, as a stream's `on` does, is the stand-in again.
 */

type Members = {
  /** Members in place of the object's own. */
  get?: Readonly<Record<PropertyKey, unknown>>;
  /** Told of a member that is set, in place of the object. */
  set?: Readonly<Record<PropertyKey, (value: unknown) => void>>;
  /** Read at each access. */
  read?: Readonly<Record<PropertyKey, () => unknown>>;
};

type Method = (...args: unknown[]) => unknown;

export function standIn<T extends object>(object: T, { get = {}, set = {}, read = {} }: Members): T {
  const methods = new WeakMap<Method, Method>();

  function methodOf(own: Method): Method {
    const known = methods.get(own);
    if (known !== undefined) return known;
    const method: Method = (...args) => {
      const result = own.apply(object, args);
      return result === object ? proxy : result;
    };
    methods.set(own, method);
    return method;
  }

  const proxy: T = new Proxy(object, {
    get(_, name) {
      if (Object.hasOwn(get, name)) return get[name];
      if (Object.hasOwn(read, name)) return read[name]?.();
      const value: unknown = Reflect.get(object, name, object);
      return typeof value === 'function' && name !== 'constructor' ? methodOf(value as Method) : value;
    },
    set(_, name, value) {
      if (!Object.hasOwn(set, name)) return Reflect.set(object, name, value, object);
      set[name]?.(value);
      return true;
    },
    has: (_, name) => Object.hasOwn(get, name) || Reflect.has(object, name),
  });
  return proxy;
}
