import type { Model, Route } from "./catalog.ts";
import type { Price } from "./price.ts";

/** Whether routes can serve right now; routing's `RouteState` has this shape. */
export interface RouteAvailability {
  /** It does not rest because it failed. */
  usable(route: Route): boolean;
  /** A free route is verified: it answers, and its host reports no charge. */
  verifiedFree(route: Route): boolean;
}

/** Null where it is served on the Open Tier alone. */
export const soldAt = ({ price, routes }: Model): Price | null =>
  price ?? routes.find((route) => !route.free && route.price !== null)?.price ?? null;

/** Served on the Open Tier right now. */
export const isFree = ({ routes }: Model, routeState: Pick<RouteAvailability, "verifiedFree">): boolean =>
  routes.some((route) => route.free && routeState.verifiedFree(route));

/** To which a request would be sent right now. */
export const servingRoutes = ({ routes }: Model, routeState: RouteAvailability): Route[] =>
  routes.filter(
    (route) =>
      (route.free ? routeState.verifiedFree(route) : route.price !== null) && routeState.usable(route),
  );
