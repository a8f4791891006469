"""Light in a bent dielectric waveguide, divided among the processes: the result must not depend on the division."""

import meep as mp

mp.verbosity(0)
guide = mp.Medium(epsilon=12)
parts = [mp.Block(mp.Vector3(12, 1, mp.inf), center=mp.Vector3(-2, -3.5), material=guide),
         mp.Block(mp.Vector3(1, 12, mp.inf), center=mp.Vector3(3.5, 2), material=guide)]
source = mp.Source(mp.ContinuousSource(wavelength=2 * 11**0.5, width=20), component=mp.Ez, center=mp.Vector3(-7, -3.5), size=mp.Vector3(0, 1))
simulation = mp.Simulation(cell_size=mp.Vector3(16, 16), boundary_layers=[mp.PML(1.0)], geometry=parts, sources=[source], resolution=10)
simulation.run(until=120)
energy = simulation.electric_energy_in_box(box=mp.Volume(size=mp.Vector3(14, 14)))
point = simulation.get_field_point(mp.Ez, mp.Vector3(3.5, 5))
if mp.am_master():
    print(f"field {point.real:.9f} energy {energy:.9f}")
