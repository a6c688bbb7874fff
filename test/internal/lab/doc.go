// Package lab holds what one test run takes from the machine: a directory, child
// processes, network namespaces, cgroups, mounts and loop devices.
//
// Every one of them carries the lab's number in its name or lies in its
// directory, so that the whole lab can be removed from the number alone. A lab
// whose owner died (kill -9, a crash, a machine reboot) is removed by the next
// Open on the machine.
package lab
